// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Messages along lines of ranks, and the spans of streams, on every executor.

#include "tests/mpi/points.hpp"

namespace isoscale::executor {
namespace {

using mesh::Axis;
using namespace program;  // NOLINT: the ops

constexpr std::uint64_t count = 20'011;  // of f64: far above any eager limit

std::vector<double> values(int rank, int message) {
  return whole_values<double>(
      count, static_cast<std::uint64_t>(rank) * 100 + static_cast<std::uint64_t>(message));
}

/// A message that every rank sends to its neighbour.
struct Message {
  Axis axis = Axis::pp;
  int offset = 1;
  int number = 0;  ///< of its content
};
/// Messages of one exchange on a stream.
struct Together {
  std::vector<Message> messages;
  program::StreamId stream = 0;
};
enum class Receives : std::uint8_t { in_order, reversed };
enum class Sends : std::uint8_t { each_its_own, one_buffer };

/// All messages of the exchanges arrive, play after play; one without elements is beside them.
void expect_arrive(const Point& point, const std::vector<Together>& exchanges,
                   Receives receives = Receives::in_order, Sends sends = Sends::each_its_own) {
  Sketch sketch;
  std::vector<std::pair<Message, Slice>> sent, received;
  for (const auto& [messages, stream] : exchanges) {
    std::vector<program::Transfer> transfers, taken;
    for (const Message& message : messages) {
      const bool shares = sends == Sends::one_buffer && !sent.empty();
      const Slice out = shares ? sent.front().second : sketch.buffer<double>(count);
      const Slice in = sketch.buffer<double>(count);
      sent.emplace_back(message, out);
      received.emplace_back(message, in);
      transfers.push_back({Direction::send, message.axis, message.offset, out});
      taken.push_back({Direction::receive, message.axis, -message.offset, in});
    }
    if (receives == Receives::reversed) std::ranges::reverse(taken);
    transfers.insert(transfers.begin() + 1, taken.begin(), taken.end());
    Slice none = sent.front().second;
    none.count = 0;
    transfers.push_back({Direction::send, messages[0].axis, messages[0].offset, none});
    transfers.push_back({Direction::receive, messages[0].axis, -messages[0].offset, none});
    sketch.emit(Exchange{transfers}, stream);
    // An exchange of empty messages alone matches too.
    sketch.emit(Exchange{{transfers.end() - 2, transfers.end()}}, stream);
  }
  const auto session = point.prepare(sketch);
  const int me = point.world.rank();
  for (const auto& [message, out] : sent) put(*session, out, values(me, message.number));
  for (int play = 0; play < 3; ++play) session->play({.section = Section::step});
  for (const auto& [message, in] : received) {
    const int from = mesh::neighbour(point.shape, me, message.axis, -message.offset);
    EXPECT_TRUE(get<double>(*session, in) == values(from, message.number)) << message.number;
  }
}

class Exchanges : public testing::TestWithParam<Way> {};

TEST_P(Exchanges, ArriveInOrderFromEveryNeighbour) {
  Point line{GetParam()};
  line.shape = {.pp = line.world.size()};
  // In a line of two, both neighbours are the same rank: only the offset tells the messages apart.
  const Together both{{{.number = 1}, {.offset = -1, .number = 2}}};
  // On four ranks +1 and -3 lead to the same one.
  const Together far{{{.number = 1}, {.offset = 1 - line.world.size(), .number = 2}}};
  for (const Receives receives : {Receives::in_order, Receives::reversed}) {
    for (const Together& one : {both, far}) expect_arrive(line, {one}, receives);
    expect_arrive(Point{GetParam()}, {{{{.axis = Axis::tp}, {.axis = Axis::dp}}}}, receives,
                  Sends::one_buffer);
  }
  // Messages of a link keep their order: two in one exchange, the third in another.
  expect_arrive(line, {{{{.number = 0}, {.number = 1}}}, {{{.number = 2}}}});
}

/// On odd lines, links cannot take turns.
TEST_P(Exchanges, ArriveOnLinesOfEveryLength) {
  const comm::Communicator world = comm::Communicator::world();
  for (int length = 2; length <= world.size(); ++length) {
    const bool takes_part = world.rank() < length;
    comm::Communicator line = world.split(takes_part ? 0 : -1, 0);
    if (!takes_part) continue;
    Point point{GetParam(), std::move(line)};
    point.shape = {.pp = length};
    expect_arrive(point, {{{{.number = 1}, {.offset = -1, .number = 2}}}}, Receives::reversed);
    // On streams of their own, even and odd links have communicators of their own on GPUs. In a
    // line of two, two threads of each rank send to one peer at once; tags tell messages apart.
    std::vector<Together> apart;
    for (int i = 0; i < 40; i += 2) {
      apart.push_back({{{.number = i}}, 1});
      apart.push_back({{{.offset = -1, .number = i + 1}}, 2});
    }
    expect_arrive(point, apart);
  }
}

class Streams : public testing::TestWithParam<Way> {};

/// Spans lie inside the play, follow each other on a stream, and begin after what they waited for.
void expect_orderly(const program::Program& step, std::span<const timeline::Span> spans,
                    PlayTime play) {
  EXPECT_EQ(spans.size(), step.ops.size());
  std::array<std::vector<std::size_t>, program::max_streams> of_stream;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const program::Op& op = step.ops[i];
    EXPECT_EQ(spans[i].op, i);
    EXPECT_LE(play.begin, spans[i].start) << i;
    EXPECT_LE(spans[i].start, spans[i].end) << i;
    EXPECT_LE(spans[i].end, play.end) << i;
    auto& mine = of_stream[op.stream];
    if (!mine.empty()) {
      EXPECT_LE(spans[mine.back()].end, spans[i].start) << i;
    }
    for (const program::Wait& wait : step.waits_of(op)) {
      const std::size_t awaited = of_stream[wait.stream][wait.count - 1];
      EXPECT_LE(spans[awaited].end, spans[i].start) << i << " waits for " << awaited;
    }
    mine.push_back(i);
  }
}

TEST_P(Streams, GiveTheSameBitsAndOrderlySpans) {
  const Layers layers;
  const auto expected_of = [&](const Point& point) {
    const auto session = layers.on(point);
    for (int play = 0; play < 3; ++play) {
      const PlayTime time = session->play({.section = Section::step, .trace = Trace::on});
      expect_orderly(layers.sketch.program().step(), session->spans(), time);
      session->play({.section = Section::step});
    }
    return get<double>(*session, layers.sum);
  };
  const auto expected = expected_of(Point{{.streams = HostStreams::folded}});
  EXPECT_TRUE(expected_of(Point{GetParam()}) == expected);
  // Not all alike for a trivial reason.
  EXPECT_GT(std::set<double>(expected.begin(), expected.end()).size(), 10U);
}

std::string name_of(const testing::TestParamInfo<Way>& way) { return way.param.name; }

INSTANTIATE_TEST_SUITE_P(Ways, Exchanges, testing::ValuesIn(ways()), name_of);
INSTANTIATE_TEST_SUITE_P(Ways, Streams, testing::ValuesIn(ways()), name_of);

}  // namespace
}  // namespace isoscale::executor
