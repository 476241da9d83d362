// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/cuda/kernel_shim/arrays.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "tests/cuda/elements.hpp"
#include "tests/cuda/kernel_shim/fibers.hpp"

namespace isoscale::kernel_shim {
namespace {

constexpr std::size_t page = 4096;
constexpr std::byte untouched{0xa5};

/// True if the element is the same number in both, or differs by no more than the tolerance.
bool agree(const Array& array, std::uint64_t i, Tolerance tolerance, double& a, double& b) {
  standin::with_number(array.type, [&](auto element) {
    a = static_cast<double>(decltype(element)::load(array.kernel, i));
    b = static_cast<double>(decltype(element)::load(array.reference, i));
    return true;
  });
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  return std::abs(a - b) <= tolerance.relative * (1 + std::max(std::abs(a), std::abs(b)));
}

}  // namespace

Tolerance rounding_of(program::DType type) {
  constexpr double f64 = 1e-12, f32 = 3e-5, f16 = 2e-3, bf16 = 1e-2;
  switch (type) {
    case program::DType::f64:
      return {f64};
    case program::DType::f32:
      return {f32};
    case program::DType::f16:
      return {f16};
    default:
      return {bf16};
  }
}

Case::Case(std::uint64_t seed) : random_(seed) {
  standin::machine().reset({});
  cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0);
}

Case::~Case() {
  for (const Array& array : arrays_) {
    cudaFree(array.reference);
    if (array.pages == nullptr) {
      cudaFree(array.kernel);
    } else {
      munmap(array.pages, array.page_bytes + page);
    }
  }
  cudaStreamDestroy(stream_);
  EXPECT_EQ(standin::machine().memory.damaged(), 0);
}

std::uint64_t Case::extent() {
  static constexpr std::array<std::uint64_t, 18> extents{1,  2,  3,   7,   16,  31,  32,  33,  63,
                                                         64, 65, 100, 127, 255, 256, 257, 300, 513};
  return extents[below(extents.size())];
}

std::uint64_t Case::stride(std::uint64_t columns) {
  constexpr std::uint64_t aligned = 16;
  const std::uint64_t kind = below(3);
  if (kind == 0) return columns;
  return kind == 1 ? (columns + aligned - 1) / aligned * aligned : columns + below(4);
}

Array Case::take_reachable(program::DType type, std::uint64_t count) {
  Array array{.type = type, .bytes = count * program::element_size(type)};
  void *kernel = nullptr, *reference = nullptr;
  EXPECT_EQ(cudaMalloc(&kernel, array.bytes), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&reference, array.bytes), cudaSuccess);
  array.kernel = static_cast<std::byte*>(kernel);
  array.reference = static_cast<std::byte*>(reference);
  std::memset(kernel, 0, array.bytes);
  std::memset(reference, 0, array.bytes);
  return arrays_.emplace_back(array);
}

Array Case::take(program::DType type, std::uint64_t count, Values values) {
  Array array{.type = type, .bytes = count * program::element_size(type)};
  void* reference = nullptr;
  EXPECT_EQ(cudaMalloc(&reference, std::max<std::size_t>(array.bytes, 1)), cudaSuccess);
  array.reference = static_cast<std::byte*>(reference);
  array.page_bytes = (array.bytes / page + 1) * page;
  array.pages =
      static_cast<std::byte*>(mmap(nullptr, array.page_bytes + page, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  EXPECT_EQ(mprotect(array.pages + array.page_bytes, page, PROT_NONE), 0);
  std::fill_n(array.pages, array.page_bytes, untouched);
  // Half of the arrays start where 16 bytes can be moved at once; the others end at the page's end.
  std::size_t begin = array.page_bytes - array.bytes;
  if (coin()) begin = begin / 16 * 16;
  array.kernel = array.pages + begin;

  if (values == Values::bits) {
    for (std::size_t i = 0; i < array.bytes; i += sizeof(std::uint64_t)) {
      const std::uint64_t word = random_();
      std::memcpy(array.kernel + i, &word, std::min(sizeof word, array.bytes - i));
    }
  } else {
    standin::with_number(type, [&](auto element) {
      using Element = decltype(element);
      for (std::uint64_t i = 0; i < count; ++i) {
        constexpr double grain = 1e-6, most = 100;
        double value = (static_cast<double>(below(2000001)) - 1e6) * grain;
        if (below(20) == 0) value = std::ldexp(value, static_cast<int>(below(30)) - 15);
        if (below(40) == 0) value = 0;
        if (values == Values::positive) value = std::abs(value);
        if constexpr (std::is_integral_v<typename Element::Value>) {
          Element::store(array.kernel, i,
                         static_cast<typename Element::Value>(
                             static_cast<std::int64_t>(std::fmod(value, 1) * most)));
        } else {
          standin::store_rounded<Element>(array.kernel, i, value);
        }
      }
      return true;
    });
  }
  std::memcpy(array.reference, array.kernel, array.bytes);
  return arrays_.emplace_back(array);
}

void Case::compare(const std::string& what, Tolerance tolerance) {
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << what;
  EXPECT_EQ(take_failure(), "") << what;
  for (const Array& array : arrays_) {
    if (array.pages != nullptr) {
      const auto is_other = [](std::byte byte) { return byte != untouched; };
      EXPECT_TRUE(std::none_of(array.pages, array.kernel, is_other)) << what << ": before";
      EXPECT_TRUE(
          std::none_of(array.kernel + array.bytes, array.pages + array.page_bytes, is_other))
          << what << ": behind";
    }
    if (std::memcmp(array.kernel, array.reference, array.bytes) == 0) continue;
    double a = 0, b = 0;
    for (std::uint64_t i = 0; i < array.bytes / program::element_size(array.type); ++i) {
      if (agree(array, i, tolerance, a, b)) continue;
      ADD_FAILURE() << what << ": element " << i << " in " << program::name(array.type) << " is "
                    << a << ", not " << b;
      break;
    }
  }
}

}  // namespace isoscale::kernel_shim
