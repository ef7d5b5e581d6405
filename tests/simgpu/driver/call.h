// One call of the driver's interface, from entry to return. It is counted, fails on request, is
// refused before cuInit, and is logged with its result.
//
//   CUresult cuSomething(...) {
//     Call call("cuSomething", {{"size", size}});
//     if (!call.ok()) return call.result();
//     ...
//     return call.Return(outcome);
//   }
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>

#include "cuda.h"

namespace simgpu {

// The outcome of a request. `illegal` is not empty if the caller broke a rule of CUDA's, which a
// program without bugs never does.
struct Outcome {
  CUresult code = CUDA_SUCCESS;
  std::string illegal;

  bool ok() const { return code == CUDA_SUCCESS; }
};

inline Outcome Success() { return {}; }
inline Outcome Failure(CUresult code) { return {code, ""}; }
inline Outcome Illegal(CUresult code, std::string why) { return {code, std::move(why)}; }

// "0x7f0012345000", as addresses appear in every message.
std::string Hex(std::uint64_t value);

struct Argument {
  template <typename T>
  Argument(const char* argument_name, T argument) : name(argument_name) {
    if constexpr (std::is_pointer_v<T>) {
      value = reinterpret_cast<std::uintptr_t>(argument);
    } else {
      value = static_cast<std::uint64_t>(argument);
    }
  }
  const char* name;
  std::uint64_t value;
};

class Call {
 public:
  // What a call needs: mostly cuInit() first, often a current context as well.
  enum class Needs { kNothing, kInit, kContext };
  // A stream that the program made says by itself which context is meant.
  static Needs ContextUnless(CUstream stream) {
    return reinterpret_cast<std::uintptr_t>(stream) > 2 ? Needs::kInit : Needs::kContext;
  }

  explicit Call(const char* name, std::initializer_list<Argument> arguments = {},
                Needs needs = Needs::kInit);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool ok() const { return result_ == CUDA_SUCCESS; }
  CUresult result() const { return result_; }

  // More arguments, as separate words, for arguments that are not numbers. Only called if
  // is_logged().
  bool is_logged() const { return is_logged_; }
  void Note(const std::string& text) { line_ += " " + text; }

  // If the call succeeds, it takes so long on the calling thread.
  void Costs(double microseconds) { microseconds_ = microseconds; }

  CUresult Return(const Outcome& outcome);
  CUresult Return(CUresult code) { return result_ = code; }
  // The caller broke a rule: returns `code`, and the log says why.
  CUresult Refuse(CUresult code, const std::string& why) { return Return(Illegal(code, why)); }

 private:
  const char* const name_;
  bool is_logged_ = false;
  std::string line_;
  double microseconds_ = 0;
  CUresult result_ = CUDA_SUCCESS;
};

}  // namespace simgpu
