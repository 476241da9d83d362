// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Counts the functions of Isoscale that are active from main to a GEMM of a timed step, as an
// unoptimised build has them. The sources on this way are compiled into this program with
// -finstrument-functions, so each of their functions calls the first two functions below; those of
// the standard library's headers are left out. All else is in libisoscale.so. The program is
// `isoscale`: it runs what its arguments say, and the first GEMM of a timed step prints the way.
#include <cblas.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "runner/measure/measure_steps.hpp"

namespace {

constexpr std::size_t most = 1024;
thread_local std::array<void*, most> active{};  // functions, the caller before the called one
thread_local std::size_t depth = 0;

/// Prints where a function is; its name, too, if the program exports it.
void print(const void* function) {
  Dl_info place{};
  if (dladdr(function, &place) == 0) return;
  int status = 0;
  char* const name = place.dli_sname == nullptr
                         ? nullptr
                         : abi::__cxa_demangle(place.dli_sname, nullptr, nullptr, &status);
  std::fprintf(stderr, "  %s+%#tx %s\n", place.dli_fname,
               static_cast<const char*>(function) - static_cast<const char*>(place.dli_fbase),
               name == nullptr ? "" : name);
  std::free(name);
}

bool is_in_step() {
  const auto measure = reinterpret_cast<void*>(&isoscale::runner::measure::measure);
  for (std::size_t i = 0; i < depth; ++i) {
    if (active[i] == measure) return true;
  }
  return false;
}

/// Prints the frames that belong to libisoscale.so: their functions are not counted.
void print_uncounted() {
  std::array<void*, most> frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  for (int i = 0; i < count; ++i) {
    Dl_info place{};
    if (dladdr(frames[static_cast<std::size_t>(i)], &place) == 0) continue;
    if (!std::string_view{place.dli_fname}.ends_with("libisoscale.so")) continue;
    std::fputs("not counted: compile its source into this program, too\n", stderr);
    print(frames[static_cast<std::size_t>(i)]);
  }
}

}  // namespace

extern "C" {

void __cyg_profile_func_enter(void* function, void* /*caller*/) { active.at(depth++) = function; }
void __cyg_profile_func_exit(void* /*function*/, void* /*caller*/) { --depth; }

/// Replaces the function of the BLAS library, and calls it.
void cblas_sgemm(CBLAS_LAYOUT layout, CBLAS_TRANSPOSE transpose_a, CBLAS_TRANSPOSE transpose_b,
                 blasint m, blasint n, blasint k, float alpha, const float* a, blasint stride_a,
                 const float* b, blasint stride_b, float beta, float* d, blasint stride_d) {
  static const auto multiply =
      reinterpret_cast<decltype(&cblas_sgemm)>(dlsym(RTLD_NEXT, "cblas_sgemm"));
  static bool is_told = false;
  if (!is_told && is_in_step()) {
    is_told = true;
    std::fprintf(stderr, "functions from main to a GEMM: %zu\n", depth);
    for (std::size_t i = 0; i < depth; ++i) print(active[i]);
    print_uncounted();
  }
  multiply(layout, transpose_a, transpose_b, m, n, k, alpha, a, stride_a, b, stride_b, beta, d,
           stride_d);
}

}  // extern "C"
