// libFuzzer writes its findings to the first folder on its command line. Under Bazel that must not
// be the corpus, which belongs to the source tree.
#include <cstdlib>
#include <vector>

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static std::vector<char*> with_scratch(*argv, *argv + *argc);
  if (char* const scratch = std::getenv("TEST_TMPDIR")) {
    with_scratch.insert(with_scratch.begin() + 1, scratch);
    *argc += 1;
  }
  with_scratch.push_back(nullptr);
  *argv = with_scratch.data();
  return 0;
}
