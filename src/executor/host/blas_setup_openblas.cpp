// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <cblas.h>
#include <fmt/format.h>

#include "executor/host/resources.hpp"

namespace isoscale::executor::host {
namespace {

Vectors vectors_of_this_cpu() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return Vectors::avx512;
  if (__builtin_cpu_supports("avx2")) return Vectors::avx2;
#endif
  return Vectors::unknown;
}

}  // namespace

std::string blas_warning() {
  return kernel_warning(openblas_get_corename(), vectors_of_this_cpu());
}

int set_blas_threads(int threads) {
  openblas_set_num_threads(threads);
  return openblas_get_num_threads();
}

std::string blas_name() {
  // The configuration is "OpenBLAS 0.3.21 DYNAMIC_ARCH ..."; only name and version are kept.
  const std::string_view config{openblas_get_config()};
  const std::size_t after_version = config.find(' ', config.find(' ') + 1);
  return fmt::format("{} ({})", config.substr(0, after_version), openblas_get_corename());
}

}  // namespace isoscale::executor::host
