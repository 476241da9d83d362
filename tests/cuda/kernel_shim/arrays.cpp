// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "tests/cuda/kernel_shim/arrays.hpp"

#include <sys/mman.h>

#include "executor/op_arguments.hpp"
#include "tests/cuda/kernel_shim/fibers.hpp"
#include "tests/executor/sketch.hpp"

namespace isoscale::kernel_shim {
namespace {

constexpr std::size_t page = 4096;
constexpr std::byte untouched{0xa5};

/// True if the two are the same number, or differ by no more than the tolerance.
bool agree(double a, double b, Tolerance tolerance) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return true;
  return std::abs(a - b) <= tolerance.relative * (1 + std::max(std::abs(a), std::abs(b)));
}

std::byte* allocated(std::size_t bytes) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)), cudaSuccess);
  return static_cast<std::byte*>(memory);
}

}  // namespace

Tolerance rounding_of(program::DType type) {
  using program::DType;
  return {type == DType::f64   ? 1e-12
          : type == DType::f32 ? 3e-5
          : type == DType::f16 ? 2e-3
                               : 1e-2};
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
  for (std::byte** copy : {&array.kernel, &array.reference}) {
    *copy = allocated(array.bytes);
    std::memset(*copy, 0, array.bytes);
  }
  return arrays_.emplace_back(array);
}

Array Case::take(program::DType type, std::uint64_t count, Values values) {
  Array array{.type = type, .bytes = count * program::element_size(type)};
  array.reference = allocated(array.bytes);
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
    for (std::uint64_t i = 0; i < count; ++i) {
      constexpr double grain = 1e-6, most = 100;
      double value = (static_cast<double>(below(2000001)) - 1e6) * grain;
      if (below(20) == 0) value = std::ldexp(value, static_cast<int>(below(30)) - 15);
      if (below(40) == 0) value = 0;
      if (values == Values::positive) value = std::abs(value);
      if (executor::is_integer(type)) value = std::fmod(value, 1) * most;
      executor::set_element(type, array.kernel, i, value);
    }
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
    for (std::uint64_t i = 0; i < array.bytes / program::element_size(array.type); ++i) {
      const double a = executor::element(array.type, array.kernel, i);
      const double b = executor::element(array.type, array.reference, i);
      if (agree(a, b, tolerance)) continue;
      ADD_FAILURE() << what << ": element " << i << " in " << program::name(array.type) << " is "
                    << a << ", not " << b;
      break;
    }
  }
}

}  // namespace isoscale::kernel_shim
