// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "tests/cuda/standin.hpp"
#include "tests/unit/matchers.hpp"

/// Random cases: each array exists twice, for the kernel and for the loops of the host.
namespace isoscale::kernel_shim {

enum class Values : std::uint8_t { numbers, positive, bits };

/// The kernel's copy ends before a page that nobody may touch.
struct Array {
  program::DType type = program::DType::f32;
  std::size_t bytes = 0;
  std::byte *kernel = nullptr, *reference = nullptr;
  std::byte* pages = nullptr;  ///< null: the kernel's copy is the stand-in's memory as well
  std::size_t page_bytes = 0;
};

/// How far apart the results of the two may be: in every bit, or relative to 1 and themselves.
struct Tolerance {
  double relative = 0;
};
inline constexpr Tolerance exactly{};
/// A tolerance for sums in another order, and for functions that another library computes.
[[nodiscard]] Tolerance rounding_of(program::DType type);

class Case {
 public:
  explicit Case(std::uint64_t seed);
  ~Case();
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  [[nodiscard]] std::uint64_t below(std::uint64_t end) { return random_() % end; }
  [[nodiscard]] bool coin() { return below(2) == 0; }
  /// Around the sizes of packs, warps and blocks.
  [[nodiscard]] std::uint64_t extent();
  /// A stride of rows of so many elements: dense, a multiple of 16, or any.
  [[nodiscard]] std::uint64_t stride(std::uint64_t columns);

  [[nodiscard]] Array take(program::DType type, std::uint64_t count, Values values);
  /// Memory that a memset of the stand-ins may write too.
  [[nodiscard]] Array take_reachable(program::DType type, std::uint64_t count);
  /// Returns the other copy of an array of the kernel; null for null.
  template <class Value>
  [[nodiscard]] Value* reference_of(Value* kernel) const {
    for (const Array& array : arrays_) {
      if (reinterpret_cast<const std::byte*>(kernel) != array.kernel) continue;
      return reinterpret_cast<Value*>(array.reference);
    }
    return nullptr;
  }
  /// Writes one element of both.
  template <class Value>
  static void set(const Array& array, std::uint64_t at, Value value) {
    reinterpret_cast<Value*>(array.kernel)[at] = value;
    reinterpret_cast<Value*>(array.reference)[at] = value;
  }

  /// Waits for both and compares all arrays.
  void compare(const std::string& what, Tolerance tolerance);
  [[nodiscard]] cudaStream_t stream() const { return stream_; }

 private:
  std::mt19937_64 random_;
  cudaStream_t stream_ = nullptr;
  std::vector<Array> arrays_;
};

}  // namespace isoscale::kernel_shim
