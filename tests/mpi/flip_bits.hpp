// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "executor/executor.hpp"
#include "program/program.hpp"

namespace isoscale::runner {

/// Spoils the first, the middle and the last element of a slice, each by its lowest and by its
/// highest bit, one after the other: calls `spoilt` with the element's place and the bit's, then
/// puts back what was there. Returns how many bits were flipped.
template <class Spoilt>
std::size_t flip_bits(executor::Session& session, const program::RankProgram& program,
                      const program::Slice& slice, const Spoilt& spoilt) {
  const std::size_t size = program::element_size(program.buffers[slice.buffer].dtype);
  std::size_t flipped = 0;
  for (const std::uint64_t at : {std::uint64_t{0}, slice.count / 2, slice.count - 1}) {
    for (const std::size_t bit : {std::size_t{0}, size * 8 - 1}) {
      program::Slice element = slice;
      element.offset += at;
      element.count = 1;
      std::vector<std::byte> right(size);
      session.read(element, right);
      std::vector<std::byte> wrong = right;
      wrong[bit / 8] ^= std::byte{1} << (bit % 8);
      session.write(element, wrong);
      spoilt(at, bit);
      session.write(element, right);
      ++flipped;
    }
  }
  return flipped;
}

}  // namespace isoscale::runner
