// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/resolve.hpp"
#include "program/op.hpp"

namespace isoscale::executor {

/// A collective on one rank: where its data lies, and that its sizes fit its group.
struct CollectiveData {
  std::uint64_t members = 1;  ///< ranks of the group
  std::uint64_t me = 0;       ///< this rank's place among them
  bool is_root = false;
  program::DType type = program::DType::u8;
  std::size_t element = 1;       ///< bytes
  std::byte* send = nullptr;     ///< null where this rank sends nothing
  std::byte* receive = nullptr;  ///< null where this rank receives nothing
  /// Elements of the whole for all_reduce, reduce and broadcast; of one member's part for the
  /// others; 0 for a barrier and for an uneven all_to_all.
  std::uint64_t count = 0;
  /// Elements to and from all members of an all_to_all.
  std::uint64_t sent = 0, received = 0;

  [[nodiscard]] std::byte* part(std::byte* base, std::uint64_t member) const {
    return base + member * count * element;
  }
};

/// Throws base::Error that names the count that does not fit the group.
[[nodiscard]] CollectiveData resolve(const Resolver& resolver, const program::Collective& op);

}  // namespace isoscale::executor
