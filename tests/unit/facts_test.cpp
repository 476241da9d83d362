// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/facts.hpp"

#include <gtest/gtest.h>

#include "program/builder.hpp"

namespace isoscale::program {
namespace {

using mesh::Axis;

/// What one rank sends in a collective over `members`, of buffers with so many f32 elements.
std::uint64_t sent(CollectiveKind kind, int members, std::uint64_t send, std::uint64_t receive) {
  const mesh::Shape mesh{.dp = members};
  Builder builder{mesh};
  builder.begin(Section::step);
  const auto buffer = [&](std::uint64_t count) {
    const BufferId id = builder.allocate({.count = count});
    builder.emit(0, Fill{.dst = builder.whole(id), .source = FillSource::constant});
    return builder.whole(id);
  };
  const Slice from = buffer(send), to = buffer(receive);
  builder.emit(0, Collective{.kind = kind, .axes = Axis::dp, .send = from, .receive = to});
  return facts(builder.finish(), mesh).traffic.at(0).sent.value();
}

TEST(Sent, IsThatOfRings) {
  // Four ranks, 1000 elements of 4 bytes in the larger buffer.
  EXPECT_EQ(sent(CollectiveKind::all_reduce, 4, 1000, 1000), 6000U);
  EXPECT_EQ(sent(CollectiveKind::reduce_scatter, 4, 1000, 250), 3000U);
  EXPECT_EQ(sent(CollectiveKind::all_gather, 4, 250, 1000), 3000U);
  EXPECT_EQ(sent(CollectiveKind::all_to_all, 4, 1000, 1000), 3000U);
  EXPECT_EQ(sent(CollectiveKind::broadcast, 4, 1000, 1000), 3000U);
  EXPECT_EQ(sent(CollectiveKind::reduce, 4, 1000, 1000), 3000U);
  EXPECT_EQ(sent(CollectiveKind::gather, 4, 250, 1000), 750U);
  EXPECT_EQ(sent(CollectiveKind::scatter, 4, 1000, 250), 750U);
}

TEST(Sent, IsNothingToOneself) {
  EXPECT_EQ(sent(CollectiveKind::all_reduce, 1, 1000, 1000), 0U);
  EXPECT_EQ(sent(CollectiveKind::all_gather, 1, 1000, 1000), 0U);
}

TEST(Sent, OfAnExchangeIsTheSumOfItsSends) {
  const mesh::Shape mesh{.pp = 4};
  Builder builder{mesh};
  builder.begin(Section::step);
  const BufferId id = builder.allocate({.count = 60});
  builder.emit(0, Fill{.dst = builder.whole(id), .source = FillSource::constant});
  const auto part = [&](std::uint64_t offset, std::uint64_t count) {
    return Slice{.buffer = id, .offset = offset, .count = count};
  };
  builder.emit(0, Exchange{{{Direction::send, Axis::pp, 1, part(0, 10)},
                            {Direction::send, Axis::pp, -1, part(10, 20)},
                            {Direction::receive, Axis::pp, 1, part(30, 25)}}});
  const Facts result = facts(builder.finish(), mesh);
  EXPECT_EQ(result.traffic.at(0).sent.value(), 30U * 4);
  EXPECT_EQ(result.traffic.at(0).bytes.value(), 30U * 4);
}

}  // namespace
}  // namespace isoscale::program
