// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  [[nodiscard]] int at(int offset) const {
    return (world.rank() + offset + world.size()) % world.size();
  }
};

class Exchanges : public testing::TestWithParam<HostOptions> {};

TEST_P(Exchanges, BothNeighboursOnALine) {
  // In a line of two, both neighbours are the same rank: only the offset tells the messages apart.
  const Line line{GetParam()};
  Sketch sketch;
  const Slice up = sketch.buffer<double>(count), down = sketch.buffer<double>(count);
  const Slice from_below = sketch.buffer<double>(count), from_above = sketch.buffer<double>(count);
  sketch.emit(Exchange{{receive(Axis::pp, 1, from_above), send(Axis::pp, -1, down),
                        send(Axis::pp, 1, up), receive(Axis::pp, -1, from_below)}});
  const auto session = line.prepare(sketch);
  const int me = line.world.rank();
  put(*session, up, values(me, 1));
  put(*session, down, values(me, 2));
  session->play(program::Section::step, Trace::off);
  EXPECT_EQ(get<double>(*session, from_below), values(line.at(-1), 1));
  EXPECT_EQ(get<double>(*session, from_above), values(line.at(1), 2));
}

TEST_P(Exchanges, MessagesOfALinkKeepTheirOrder) {
  const Line line{GetParam()};
  Sketch sketch;
  std::vector<Slice> out, in;
  for (int message = 0; message < 3; ++message) {
    out.push_back(sketch.buffer<double>(count));
    in.push_back(sketch.buffer<double>(count));
  }
  // Two in one exchange, the third in another.
  sketch.emit(Exchange{{send(Axis::pp, 1, out[0]), receive(Axis::pp, -1, in[0]),
                        send(Axis::pp, 1, out[1]), receive(Axis::pp, -1, in[1])}});
  sketch.emit(Exchange{{receive(Axis::pp, -1, in[2]), send(Axis::pp, 1, out[2])}});
  const auto session = line.prepare(sketch);
  for (std::size_t i = 0; i < out.size(); ++i) {
    put(*session, out[i], values(line.world.rank(), static_cast<int>(i)));
  }
  for (int play = 0; play < 3; ++play) session->play(program::Section::step, Trace::off);
  for (std::size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(get<double>(*session, in[i]), values(line.at(-1), static_cast<int>(i)));
  }
}

TEST_P(Exchanges, AlongTwoAxesAtOnce) {
  const Point point{GetParam()};
  Sketch sketch;
  const Slice out = sketch.buffer<double>(count);
  const Slice along_tp = sketch.buffer<double>(count), along_dp = sketch.buffer<double>(count);
  sketch.emit(Exchange{{send(Axis::tp, 1, out), send(Axis::dp, 1, out),
                        receive(Axis::dp, -1, along_dp), receive(Axis::tp, -1, along_tp)}});
  const auto session = point.prepare(sketch);
  const int me = point.world.rank();
  put(*session, out, values(me, 0));
  session->play(program::Section::step, Trace::off);
  EXPECT_EQ(get<double>(*session, along_tp),
            values(mesh::neighbour(point.shape, me, Axis::tp, -1), 0));
  EXPECT_EQ(get<double>(*session, along_dp),
            values(mesh::neighbour(point.shape, me, Axis::dp, -1), 0));
}

TEST_P(Exchanges, FartherNeighboursHaveTagsOfTheirOwn) {
  // On four ranks +1 and -3 lead to the same one.
  const Line line{GetParam()};
  const int far = 1 - line.world.size();
  Sketch sketch;
  const Slice a = sketch.buffer<double>(count), b = sketch.buffer<double>(count);
  const Slice got_a = sketch.buffer<double>(count), got_b = sketch.buffer<double>(count);
  sketch.emit(Exchange{{send(Axis::pp, 1, a), send(Axis::pp, far, b),
                        receive(Axis::pp, -far, got_b), receive(Axis::pp, -1, got_a)}});
  const auto session = line.prepare(sketch);
  put(*session, a, values(line.world.rank(), 1));
  put(*session, b, values(line.world.rank(), 2));
  session->play(program::Section::step, Trace::off);
  EXPECT_EQ(get<double>(*session, got_a), values(line.at(-1), 1));
  EXPECT_EQ(get<double>(*session, got_b), values(line.at(-1), 2));
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
  EXPECT_THAT(get<double>(*session, in), testing::ElementsAre(line.at(-1)));
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
    const int from = line.at(i % 2 == 0 ? -1 : 1);
    EXPECT_EQ(get<double>(*session, in[i]), values(from, static_cast<int>(i))) << "message " << i;
  }
}

}  // namespace
}  // namespace isoscale::executor
