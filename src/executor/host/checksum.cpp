// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/fill_and_checksum.hpp"

#include <array>
#include <cstring>

#include "executor/host/calls.hpp"

namespace isoscale::executor::host {
namespace {

struct Sum {
  std::uint64_t sum = 0, not_finite = 0;
};

/// `Word` is an unsigned integer of the size of an element.
template <class Word>
Sum sum_of(const StoredMatrix& src) {
  const std::uint64_t mask = program::exponent_mask(src.type);
  Sum result;
  std::uint64_t index = 0;
  for (std::size_t b = 0; b < src.batch; ++b) {
    for (std::size_t row = 0; row < src.rows; ++row) {
      const std::byte* at = src.data + (b * src.batch_stride + row * src.row_stride) * sizeof(Word);
      for (std::size_t column = 0; column < src.columns; ++column, at += sizeof(Word)) {
        Word bits = 0;
        std::memcpy(&bits, at, sizeof bits);
        result.sum += program::checksum_term(bits, index++);
        result.not_finite += program::is_finite(bits, mask) ? 0 : 1;
      }
    }
  }
  return result;
}

Sum sum_of_elements(const StoredMatrix& src) {
  switch (program::element_size(src.type)) {
    case 8:
      return sum_of<std::uint64_t>(src);
    case 4:
      return sum_of<std::uint32_t>(src);
    case 2:
      return sum_of<std::uint16_t>(src);
    default:
      return sum_of<std::uint8_t>(src);
  }
}

void flip(const ChecksumCall& call) {
  std::array<std::uint64_t, 2> words{};
  std::memcpy(words.data(), call.flip, sizeof words);
  const auto [element, mask] = words;
  const StoredMatrix& src = call.src;
  if (mask == 0 || element >= src.batch * src.rows * src.columns) return;
  const std::uint64_t row = element / src.columns;
  const std::uint64_t at =
      row / src.rows * src.batch_stride + row % src.rows * src.row_stride + element % src.columns;
  const std::size_t size = program::element_size(src.type);
  std::uint64_t bits = 0;  // the low bytes come first on all machines that this runs on
  std::memcpy(&bits, src.data + at * size, size);
  bits ^= mask;
  std::memcpy(src.data + at * size, &bits, size);
}

}  // namespace

void run(const ChecksumCall& call) {
  if (call.flip != nullptr) flip(call);
  const Sum sum = sum_of_elements(call.src);
  std::memcpy(call.sum, &sum, sizeof sum);
}

}  // namespace isoscale::executor::host
