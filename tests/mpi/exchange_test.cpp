// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/mpi/points.hpp"

namespace isoscale::executor {
namespace {

using mesh::Axis;
using program::Direction;
using program::Exchange;
using program::Slice;
using program::Transfer;

constexpr std::uint64_t count = 20'011;  // of f64: far above any eager limit

Transfer send(Axis axis, int offset, Slice slice) {
  return {.direction = Direction::send, .axis = axis, .offset = offset, .slice = slice};
}
Transfer receive(Axis axis, int offset, Slice slice) {
  return {.direction = Direction::receive, .axis = axis, .offset = offset, .slice = slice};
}

std::vector<double> values(int rank, int message) {
  return whole_values<double>(
      count, static_cast<std::uint64_t>(rank) * 100 + static_cast<std::uint64_t>(message));
}

/// On one line of ranks along pp.
struct Line : Point {
  explicit Line(const HostOptions& options = {}) : Point(options) { shape = {.pp = world.size()}; }
};

/// A message that every rank sends to its neighbour.
struct Message {
  Axis axis = Axis::pp;
  int offset = 1;
  int number = 0;  ///< of its content
};
enum class Receives : std::uint8_t { in_order, reversed };
enum class Sends : std::uint8_t { each_its_own, one_buffer };

/// Each of `exchanges` has these messages; all arrive, play after play.
void expect_arrive(const Point& point, const std::vector<std::vector<Message>>& exchanges,
                   Receives receives = Receives::in_order, Sends sends = Sends::each_its_own) {
  Sketch sketch;
  std::vector<std::pair<Message, Slice>> sent, received;
  for (const auto& messages : exchanges) {
    std::vector<Transfer> transfers, taken;
    for (const Message& message : messages) {
      const bool shares = sends == Sends::one_buffer && !sent.empty();
      const Slice out = shares ? sent.front().second : sketch.buffer<double>(count);
      const Slice in = sketch.buffer<double>(count);
      sent.emplace_back(message, out);
      received.emplace_back(message, in);
      transfers.push_back(send(message.axis, message.offset, out));
      taken.push_back(receive(message.axis, -message.offset, in));
    }
    if (receives == Receives::reversed) std::ranges::reverse(taken);
    transfers.insert(transfers.begin() + 1, taken.begin(), taken.end());
    sketch.emit(Exchange{transfers});
  }
  const auto session = point.prepare(sketch);
  const int me = point.world.rank();
  for (const auto& [message, out] : sent) put(*session, out, values(me, message.number));
  for (int play = 0; play < 3; ++play) session->play(program::Section::step, Trace::off);
  for (const auto& [message, in] : received) {
    const int from = mesh::neighbour(point.shape, me, message.axis, -message.offset);
    EXPECT_EQ(get<double>(*session, in), values(from, message.number)) << message.number;
  }
}

class Exchanges : public testing::TestWithParam<HostOptions> {};

TEST_P(Exchanges, ArriveInOrderFromEveryNeighbour) {
  const Line line{GetParam()};
  // In a line of two, both neighbours are the same rank: only the offset tells the messages apart.
  for (const Receives receives : {Receives::in_order, Receives::reversed}) {
    expect_arrive(line, {{{.number = 1}, {.offset = -1, .number = 2}}}, receives);
    // On four ranks +1 and -3 lead to the same one.
    expect_arrive(line, {{{.number = 1}, {.offset = 1 - line.world.size(), .number = 2}}},
                  receives);
    expect_arrive(Point{GetParam()}, {{{.axis = Axis::tp}, {.axis = Axis::dp}}}, receives,
                  Sends::one_buffer);
  }
  // Messages of a link keep their order: two in one exchange, the third in another.
  expect_arrive(line, {{{.number = 0}, {.number = 1}}, {{.number = 2}}});
}

TEST_P(Exchanges, EmptyMessagesMatchToo) {
  const Line line{GetParam()};
  Sketch sketch;
  Slice none = sketch.buffer<double>(1);
  none.count = 0;
  const Slice out = sketch.buffer<double>(1), in = sketch.buffer<double>(1);
  sketch.emit(Exchange{{send(Axis::pp, 1, none), receive(Axis::pp, -1, none)}});
  sketch.emit(Exchange{{send(Axis::pp, 1, out), receive(Axis::pp, -1, in)}});
  const auto session = line.prepare(sketch);
  put<double>(*session, out, {static_cast<double>(line.world.rank())});
  session->play(program::Section::step, Trace::off);
  EXPECT_THAT(get<double>(*session, in),
              testing::ElementsAre(mesh::neighbour(line.shape, line.world.rank(), Axis::pp, -1)));
}

std::string name_of(const testing::TestParamInfo<HostOptions>& options) {
  return options.param.elements_per_call == max_elements_per_call ? "whole" : "chunks";
}

INSTANTIATE_TEST_SUITE_P(Ways, Exchanges,
                         testing::Values(HostOptions{}, HostOptions{.elements_per_call = 3'001}),
                         name_of);

/// Two threads of each rank send to the same peer at once, at first in opposite order on half of
/// the ranks: tags alone keep the messages apart.
TEST(ExchangesOnThreads, TwoStreamsToTheSamePeer) {
  const Line line{{.streams = HostStreams::threads}};
  constexpr int rounds = 20;
  Sketch sketch;
  std::vector<Slice> out, in;
  for (int i = 0; i < 2 * rounds; ++i) {
    out.push_back(sketch.buffer<double>(count));
    in.push_back(sketch.buffer<double>(count));
  }
  for (std::size_t i = 0; i < out.size(); i += 2) {
    sketch.emit(Exchange{{send(Axis::pp, 1, out[i]), receive(Axis::pp, -1, in[i])}}, 1);
    sketch.emit(Exchange{{send(Axis::pp, -1, out[i + 1]), receive(Axis::pp, 1, in[i + 1])}}, 2);
  }
  const auto session = line.prepare(sketch);
  EXPECT_FALSE(session->facts().folded);
  for (std::size_t i = 0; i < out.size(); ++i) {
    put(*session, out[i], values(line.world.rank(), static_cast<int>(i)));
  }
  for (int play = 0; play < 3; ++play) session->play(program::Section::step, Trace::off);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const int from = mesh::neighbour(line.shape, line.world.rank(), Axis::pp, i % 2 == 0 ? -1 : 1);
    EXPECT_EQ(get<double>(*session, in[i]), values(from, static_cast<int>(i))) << "message " << i;
  }
}

}  // namespace
}  // namespace isoscale::executor
