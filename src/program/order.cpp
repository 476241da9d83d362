// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/order.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "base/error.hpp"

namespace isoscale::program {

std::vector<Clock> clocks_before(const Program& program) {
  std::vector<Clock> before;
  before.reserve(program.ops.size());
  std::array<std::vector<std::uint32_t>, max_streams> ops_of_stream;
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    auto& mine = ops_of_stream[op.stream];
    Clock known;
    const auto join_after = [&](StreamId stream, std::uint32_t count) {
      if (count == 0) return;
      if (count > ops_of_stream[stream].size()) {
        throw base::Error(fmt::format("op {} waits for op {} of stream {}, which is issued later",
                                      i, count, stream));
      }
      known.join(before[ops_of_stream[stream][count - 1]]);
      known.join(stream, count);
    };
    join_after(op.stream, static_cast<std::uint32_t>(mine.size()));
    for (const Wait& wait : program.waits_of(op)) join_after(wait.stream, wait.count);
    before.push_back(known);
    mine.push_back(i);
  }
  return before;
}

}  // namespace isoscale::program
