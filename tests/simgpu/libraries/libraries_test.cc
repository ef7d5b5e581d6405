// The libraries over the simulated driver, called as a framework calls them: by name.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr char kFolder[] = "tests/simgpu/";
const char* const kLibraries[] = {
    "libcublas.so.12",   "libcublasLt.so.12", "libcudart.so.12", "libcudnn.so.9",
    "libcufft.so.11",    "libcupti.so.12",    "libcurand.so.10", "libcusolver.so.11",
    "libcusparse.so.12", "libnccl.so.2",
};

void* Open(const std::string& file) {
  void* const library = dlopen((kFolder + file).c_str(), RTLD_NOW);
  EXPECT_NE(library, nullptr) << dlerror();
  return library;
}

// Ends the process: 0 if no library brought a driver with it.
[[noreturn]] void LoadAllWithoutDriver() {
  for (const char* file : kLibraries) {
    if (!dlopen((std::string(kFolder) + "libraries/" + file).c_str(), RTLD_NOW)) std::_Exit(1);
  }
  std::_Exit(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) ? 2 : 0);
}

TEST(Libraries, LoadWithoutADriver) {
  EXPECT_EXIT(LoadAllWithoutDriver(), testing::ExitedWithCode(0), "");
}

class LibrariesOverDriver : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    driver_ = Open("driver/libcuda.so.1");  // the others find it by its soname
    runtime_ = Open("libraries/libcudart.so.12");
  }

  template <typename... Arguments>
  static long Call(void* library, const char* name, Arguments... arguments) {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, name));
    EXPECT_NE(function, nullptr) << name;
    return function ? function(arguments...) : -1;
  }

  template <typename... Arguments>
  static long Runtime(const char* name, Arguments... arguments) {
    return Call(runtime_, name, arguments...);
  }

  static void* Allocate(std::size_t bytes) {
    void* pointer = nullptr;
    EXPECT_EQ(Runtime("cudaMalloc", &pointer, bytes), 0);
    return pointer;
  }

  static void* Freed(std::size_t bytes) {
    void* const pointer = Allocate(bytes);
    EXPECT_EQ(Runtime("cudaFree", pointer), 0);
    return pointer;
  }

  static std::size_t FreeBytes() {
    std::size_t free = 0, total = 0;
    EXPECT_EQ(Runtime("cudaMemGetInfo", &free, &total), 0);
    return free;
  }

  static inline void* driver_ = nullptr;
  static inline void* runtime_ = nullptr;
};

TEST_F(LibrariesOverDriver, RuntimeTakesItsMemoryFromTheDriver) {
  const std::size_t before = FreeBytes();
  void* const block = Allocate(1 << 20);
  EXPECT_EQ(FreeBytes(), before - (1 << 20));

  const std::uint64_t written = 0x0123456789abcdef;
  std::uint64_t read = 0;
  const std::size_t bytes = sizeof written;
  EXPECT_EQ(Runtime("cudaMemcpy", block, &written, bytes, 1), 0);
  EXPECT_EQ(Runtime("cudaMemcpy", &read, block, bytes, 2), 0);
  EXPECT_EQ(read, written);

  EXPECT_EQ(Runtime("cudaFree", block), 0);
  EXPECT_EQ(FreeBytes(), before);
}

TEST_F(LibrariesOverDriver, RuntimeKeepsTheLastErrorUntilItIsAskedFor) {
  void* pointer = nullptr;
  EXPECT_EQ(Runtime("cudaMalloc", &pointer, std::size_t{1} << 40), 2);
  EXPECT_EQ(Runtime("cudaPeekAtLastError"), 2);
  EXPECT_EQ(Runtime("cudaGetLastError"), 2);
  EXPECT_EQ(Runtime("cudaGetLastError"), 0);
}

TEST_F(LibrariesOverDriver, ProductsRefuseFreedMemory) {
  void* const blas = Open("libraries/libcublas.so.12");
  void* handle = nullptr;
  ASSERT_EQ(Call(blas, "cublasCreate_v2", &handle), 0);
  void* const good = Allocate(4096);
  void* const bad = Freed(4096);
  const float factor = 1;
  const auto multiply = [&](void* a, void* b, void* c) {
    return Call(blas, "cublasSgemm_v2", handle, 0, 0, 8, 8, 8, &factor, a, 8, b, 8, &factor, c, 8);
  };
  EXPECT_EQ(multiply(good, good, good), 0);
  EXPECT_EQ(multiply(bad, good, good), 13);
  EXPECT_EQ(multiply(good, bad, good), 13);
  EXPECT_EQ(multiply(good, good, bad), 13);
  EXPECT_EQ(Call(blas, "cublasDestroy_v2", handle), 0);
  EXPECT_EQ(Runtime("cudaFree", good), 0);
}

TEST_F(LibrariesOverDriver, SizesOfWorkAreasAreWritten) {
  void* const solver = Open("libraries/libcusolver.so.11");
  int elements = 0;
  EXPECT_EQ(Call(solver, "cusolverDnSgetrf_bufferSize", nullptr, 8, 8, nullptr, 8, &elements), 0);
  EXPECT_GT(elements, 0);
  // A query that no table lists must not appear to succeed.
  EXPECT_EQ(Call(solver, "cusolverDnSlange_bufferSize", nullptr, nullptr, nullptr), 9);
}

TEST_F(LibrariesOverDriver, WeightsOfARecurrentNetworkFillTheirSpace) {
  void* const dnn = Open("libraries/libcudnn.so.9");
  void *rnn = nullptr, *matrix = nullptr, *bias = nullptr;
  ASSERT_EQ(Call(dnn, "cudnnCreateRNNDescriptor", &rnn), 0);
  ASSERT_EQ(Call(dnn, "cudnnCreateTensorDescriptor", &matrix), 0);
  ASSERT_EQ(Call(dnn, "cudnnCreateTensorDescriptor", &bias), 0);
  // A bidirectional LSTM of two layers: inputs of 3, hidden states of 5.
  ASSERT_EQ(
      Call(dnn, "cudnnSetRNNDescriptor_v8", rnn, 0, 2, 2, 1, 0, 0, 0, 0, 3, 5, 5, 2, nullptr, 0u),
      0);
  std::size_t bytes = 0;
  ASSERT_EQ(Call(dnn, "cudnnGetRNNWeightSpaceSize", nullptr, rnn, &bytes), 0);

  std::vector<int> owners(bytes / sizeof(float), 0);
  char* const start = reinterpret_cast<char*>(std::uintptr_t{1} << 40);
  const auto mark = [&](void* tensor, void* address) {
    int type = 0, rank = 0, sizes[3] = {}, strides[3] = {};
    ASSERT_EQ(Call(dnn, "cudnnGetTensorNdDescriptor", tensor, 3, &type, &rank, sizes, strides), 0);
    const std::size_t first = (static_cast<char*>(address) - start) / sizeof(float);
    for (int i = 0; i < sizes[0] * sizes[1] * sizes[2]; ++i) ++owners.at(first + i);
  };
  for (int layer = 0; layer < 4; ++layer) {
    for (int part = 0; part < 8; ++part) {
      void *matrix_address = nullptr, *bias_address = nullptr;
      ASSERT_EQ(Call(dnn, "cudnnGetRNNWeightParams", nullptr, rnn, layer, bytes, start, part,
                     matrix, &matrix_address, bias, &bias_address),
                0);
      mark(matrix, matrix_address);
      mark(bias, bias_address);
    }
  }
  EXPECT_EQ(owners, std::vector<int>(owners.size(), 1)) << "each weight belongs to one tensor";
}

TEST_F(LibrariesOverDriver, GraphsHaveAnEngineAndRefuseFreedMemory) {
  void* const dnn = Open("libraries/libcudnn.so.9");
  constexpr int kInt64 = 3, kPointer = 6, kDescriptor = 15;
  const auto create = [&] {
    void* descriptor = nullptr;
    EXPECT_EQ(Call(dnn, "cudnnBackendCreateDescriptor", 0, &descriptor), 0);
    return descriptor;
  };
  void *heuristic = create(), *configuration = create(), *engine = create(), *pack = create();
  std::int64_t count = 0, index = -1;
  const auto get = [&](void* from, int name, int type, void* to) {
    return Call(dnn, "cudnnBackendGetAttribute", from, name, type, std::int64_t{1}, &count, to);
  };
  EXPECT_EQ(get(heuristic, 202, kDescriptor, &configuration), 0);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(get(configuration, 300, kDescriptor, &engine), 0);
  EXPECT_EQ(get(engine, 1301, kInt64, &index), 0);
  EXPECT_EQ(index, 0);

  void* const good = Allocate(4096);
  for (auto [pointer, status] : {std::pair(good, 0L), std::pair(Freed(4096), 5000L)}) {
    EXPECT_EQ(
        Call(dnn, "cudnnBackendSetAttribute", pack, 1001, kPointer, std::int64_t{1}, &pointer), 0);
    EXPECT_EQ(Call(dnn, "cudnnBackendExecute", nullptr, nullptr, pack), status);
  }
  for (void* each : {heuristic, configuration, engine, pack}) {
    EXPECT_EQ(Call(dnn, "cudnnBackendDestroyDescriptor", each), 0);
  }
  EXPECT_EQ(Runtime("cudaFree", good), 0);
}

TEST_F(LibrariesOverDriver, CollectivesPutOwnBytesWhereTheyBelong) {
  void* const nccl = Open("libraries/libnccl.so.2");
  struct {
    char bytes[128];
  } id;
  EXPECT_EQ(Call(nccl, "ncclGetUniqueId", &id), 0);
  void* second = nullptr;
  void* const stream = nullptr;
  EXPECT_EQ(Call(nccl, "ncclCommInitRank", &second, 2, id, 2), 4) << "ranks are 0 and 1";
  ASSERT_EQ(Call(nccl, "ncclCommInitRank", &second, 2, id, 1), 0);

  void* const send = Allocate(8);
  char* const receive = static_cast<char*>(Allocate(16));
  const std::uint64_t mine = 42;
  std::uint64_t got = 0;
  const std::size_t bytes = sizeof mine, one = 1;
  EXPECT_EQ(Runtime("cudaMemcpy", send, &mine, bytes, 1), 0);
  EXPECT_EQ(Call(nccl, "ncclAllGather", send, receive, one, 5, second, stream), 0);
  EXPECT_EQ(Runtime("cudaMemcpy", &got, receive + 8, bytes, 2), 0);
  EXPECT_EQ(got, mine);
  EXPECT_EQ(Call(nccl, "ncclAllReduce", Freed(8), receive, one, 5, 0, second, stream), 1);
  EXPECT_EQ(Call(nccl, "ncclCommDestroy", second), 0);
  EXPECT_EQ(Runtime("cudaFree", send), 0);
  EXPECT_EQ(Runtime("cudaFree", receive), 0);
}

}  // namespace
