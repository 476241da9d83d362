// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Collectives, exchanges and spans: what GPUs play is what the host plays.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "executor/host/host.hpp"
#include "tests/cuda/devices.hpp"
#include "tests/executor/narrow_values.hpp"
#include "tests/executor/sketch.hpp"
#include "tests/mpi/points.hpp"

namespace isoscale::standin {
namespace {

using executor::Sketch;
using executor::Trace;
using mesh::Axis;
using mesh::AxisSet;
using program::Collective;
using program::CollectiveKind;
using program::DType;
using program::Section;
using program::Slice;

constexpr std::uint64_t part = 1'003;

/// Collective over `point`: what all buffers hold after `plays` steps.
std::vector<std::vector<std::byte>> played(executor::Executor& executor, const Sketch& sketch,
                                           const mesh::Shape& mesh, const comm::Communicator& point,
                                           int plays) {
  const auto session = executor.prepare(sketch.on(mesh), point);
  const auto& buffers = sketch.program().buffers;
  std::vector<std::vector<std::byte>> held(buffers.size());
  const auto whole = [&](std::size_t i) {
    return Slice{
        .buffer = static_cast<program::BufferId>(i), .offset = 0, .count = buffers[i].count};
  };
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const auto seed = static_cast<std::uint64_t>(point.rank()) * 100 + i;
    const auto values = executor::whole_values<double>(buffers[i].count, seed);
    session->write(whole(i), executor::stored(buffers[i].dtype, values));
  }
  for (int play = 0; play < plays; ++play) session->play(Section::step, Trace::off);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    held[i].resize(buffers[i].count * program::element_size(buffers[i].dtype));
    session->read(whole(i), held[i]);
  }
  return held;
}

/// Both kinds of play, and orders of work.
struct Way {
  settings::Graph graph = settings::Graph::off;
  std::uint64_t seed = 0;
};

class Plays : public testing::TestWithParam<Way> {
 protected:
  /// Collective over `point`, at most all ranks.
  void expect_like_host(const Sketch& sketch, const mesh::Shape& mesh,
                        const comm::Communicator& point, const std::string& what, int plays = 2) {
    machine().settings.nccl_world = point.get();
    const auto host = executor::make_host_executor({});
    const auto expected = played(*host, sketch, mesh, point, plays);
    const auto got = played(*gpu_, sketch, mesh, point, plays);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(got[i] == expected[i]) << what << ": buffer " << i << " differs from the host's";
    }
  }

  Gpus gpus_{GetParam().seed};
  std::unique_ptr<executor::Executor> gpu_ = gpus_.executor(GetParam().graph);
  mesh::Shape shape_ = executor::mesh_of(gpus_.world.size());
};

/// One collective of each kind; of the members' last as root.
std::vector<Sketch> collectives(AxisSet axes, DType type, std::uint64_t members, std::uint64_t me) {
  std::vector<Sketch> all;
  const auto add = [&](CollectiveKind kind, std::uint64_t sent, std::uint64_t received,
                       program::Reduction how = program::Reduction::sum) {
    Sketch sketch;
    Collective op{.kind = kind, .reduction = how, .axes = axes};
    if (sent > 0) op.send = sketch.buffer(type, sent);
    if (received > 0) op.receive = sketch.buffer(type, received);
    op.root = static_cast<std::int32_t>(members) - 1;
    const Slice copied = sketch.buffer(type, std::max<std::uint64_t>(received, 1));
    const std::uint32_t count = sketch.emit(op, 1);
    if (received > 0) {
      sketch.emit(program::Copy{.rows = 1,
                                .columns = static_cast<std::uint32_t>(received),
                                .src = {.slice = op.receive, .row_stride = received},
                                .dst = {.slice = copied, .row_stride = received}},
                  0, {{.stream = 1, .count = count}});
    }
    all.push_back(sketch);
  };
  using enum CollectiveKind;
  for (const auto how :
       {program::Reduction::sum, program::Reduction::min, program::Reduction::max}) {
    add(all_reduce, part, part, how);
    add(reduce, part, part, how);
    add(reduce_scatter, part * members, part, how);
  }
  add(broadcast, part, part);
  add(all_gather, part, part * members);
  add(gather, part, part * members);
  add(scatter, part * members, part);
  add(all_to_all, part * members, part * members);
  add(barrier, 0, 0);
  // In place.
  Sketch sketch;
  const Slice whole = sketch.buffer(type, part * members);
  const Slice mine{.buffer = whole.buffer, .offset = me * part, .count = part};
  sketch.all_reduce(whole, axes);
  sketch.emit(Collective{.kind = reduce_scatter, .axes = axes, .send = whole, .receive = mine});
  sketch.emit(Collective{.kind = all_gather, .axes = axes, .send = mine, .receive = whole});
  sketch.emit(Collective{.kind = broadcast, .axes = axes, .send = whole, .receive = whole});
  all.push_back(sketch);
  return all;
}

TEST_P(Plays, EveryCollective) {
  const int rank = gpus_.world.rank();
  for (const AxisSet axes :
       {AxisSet{Axis::tp}, AxisSet{Axis::dp}, AxisSet{Axis::tp, Axis::pp}, mesh::every_axis}) {
    const auto members = mesh::group_members(shape_, rank, axes).size();
    const auto me = static_cast<std::uint64_t>(mesh::group_index(shape_, rank, axes));
    for (const DType type :
         {DType::f32, DType::f64, DType::i64, DType::i32, DType::i8, DType::u8}) {
      int number = 0;
      for (const Sketch& sketch : collectives(axes, type, members, me)) {
        expect_like_host(sketch, shape_, gpus_.world,
                         fmt::format("collective {} of {} over {}", number++, program::name(type),
                                     mesh::to_string(axes)));
      }
    }
  }
}

TEST_P(Plays, AnUnevenAllToAll) {
  const auto ranks = static_cast<std::uint64_t>(gpus_.world.size());
  const auto me = static_cast<std::uint64_t>(gpus_.world.rank());
  const auto count = [](std::uint64_t from, std::uint64_t to) {
    return (from + 2 * to) % 3 == 1 ? 0 : 17 + 100 * from + 10 * to;
  };
  Sketch sketch;
  Collective op{.kind = CollectiveKind::all_to_all, .axes = mesh::every_axis};
  std::uint64_t sent = 0, received = 0;
  for (std::uint64_t other = 0; other < ranks; ++other) {
    op.send_counts.push_back(count(me, other));
    op.receive_counts.push_back(count(other, me));
    sent += op.send_counts.back();
    received += op.receive_counts.back();
  }
  op.send = sketch.buffer<double>(sent);
  op.receive = sketch.buffer<double>(received);
  sketch.emit(op);
  expect_like_host(sketch, shape_, gpus_.world, "uneven all_to_all");
}

program::Transfer send(int offset, Slice slice) {
  return {
      .direction = program::Direction::send, .axis = Axis::pp, .offset = offset, .slice = slice};
}
program::Transfer receive(int offset, Slice slice) {
  return {
      .direction = program::Direction::receive, .axis = Axis::pp, .offset = offset, .slice = slice};
}

/// Messages with both neighbours, in one exchange and in two on streams of their own. In a line of
/// two, what is received first is what the peer sends last.
std::vector<Sketch> exchanges() {
  std::vector<Sketch> all;
  for (const bool together : {true, false}) {
    Sketch sketch;
    const Slice up = sketch.buffer<double>(part), down = sketch.buffer<double>(part);
    const Slice below = sketch.buffer<double>(part), above = sketch.buffer<double>(part);
    if (together) {
      sketch.emit(
          program::Exchange{{receive(-1, below), send(-1, down), receive(1, above), send(1, up)}});
    } else {
      for (int round = 0; round < 3; ++round) {
        sketch.emit(program::Exchange{{send(1, up), receive(-1, below)}}, 1);
        sketch.emit(program::Exchange{{send(-1, down), receive(1, above)}}, 2);
      }
    }
    all.push_back(sketch);
  }
  return all;
}

TEST_P(Plays, ExchangesOnLinesOfEveryLength) {
  // A line of two has one peer as both neighbours; on odd ones, links cannot take turns.
  for (int length = 2; length <= gpus_.world.size(); ++length) {
    const bool takes_part = gpus_.world.rank() < length;
    const comm::Communicator line = gpus_.world.split(takes_part ? 0 : -1, 0);
    if (!takes_part) continue;
    int number = 0;
    for (const Sketch& sketch : exchanges()) {
      expect_like_host(sketch, {.pp = length}, line,
                       fmt::format("exchange {} on a line of {}", number++, length));
    }
  }
}

TEST_P(Plays, FartherNeighbours) {
  // On four ranks +1 and -3 lead to the same one.
  const int far = 1 - gpus_.world.size();
  Sketch sketch;
  const Slice a = sketch.buffer<double>(part), b = sketch.buffer<double>(part);
  const Slice got_a = sketch.buffer<double>(part), got_b = sketch.buffer<double>(part);
  Slice none = a;
  none.count = 0;
  sketch.emit(program::Exchange{{send(1, a), send(far, b), receive(-far, got_b), receive(-1, got_a),
                                 send(1, none), receive(-1, none)}});
  expect_like_host(sketch, {.pp = gpus_.world.size()}, gpus_.world, "farther neighbours");
}

TEST_P(Plays, ABarrierLetsNobodyPassEarly) {
  Sketch sketch;
  sketch.emit(Collective{.kind = CollectiveKind::barrier, .axes = mesh::every_axis});
  const auto session = gpu_->prepare(sketch.on(shape_), gpus_.world);
  for (int play = 0; play < 3; ++play) {
    const units::Nanoseconds begin = comm::now();  // the ranks' clocks are one machine's
    session->play(Section::step, Trace::on);
    const units::Nanoseconds end = comm::now();
    for (const std::int64_t other : gpus_.world.all_gather(begin.value())) {
      EXPECT_LE(other, end.value());
    }
  }
}

/// A chain over three streams, twice.
Sketch chain() {
  Sketch sketch;
  std::vector<Slice> links;
  for (int i = 0; i < 7; ++i) links.push_back(sketch.buffer<float>(part));
  std::uint32_t before = 0;
  for (std::size_t i = 0; i + 1 < links.size(); ++i) {
    std::vector<program::Wait> waits;
    if (i > 0) {
      waits.push_back({.stream = static_cast<program::StreamId>((i - 1) % 3), .count = before});
    }
    before = sketch.emit(Collective{.kind = CollectiveKind::all_reduce,
                                    .axes = mesh::every_axis,
                                    .send = links[i],
                                    .receive = links[i + 1]},
                         static_cast<program::StreamId>(i % 3), waits);
  }
  return sketch;
}

TEST_P(Plays, SpansLieWithinThePlayAndAfterWhatTheyWaitFor) {
  const Sketch sketch = chain();
  const program::Program& step = sketch.program().step();
  const auto session = gpu_->prepare(sketch.on(shape_), gpus_.world);
  EXPECT_EQ(session->facts().graph, GetParam().graph == settings::Graph::on);
  session->play(Section::step, Trace::off);
  for (int play = 0; play < 3; ++play) {
    const executor::PlayTime time = session->play(Section::step, Trace::on);
    const auto spans = session->spans();
    EXPECT_EQ(spans.size(), step.ops.size());
    for (std::size_t i = 0; i < spans.size(); ++i) {
      EXPECT_EQ(spans[i].op, i);
      EXPECT_LE(spans[i].start, spans[i].end);
      EXPECT_GE(spans[i].start.value(), time.begin.value());
      EXPECT_LE(spans[i].end.value(), time.end.value());
      // Each waits for the one before it.
      const std::size_t before = i == 0 ? 0 : i - 1;
      EXPECT_GE(spans[i].start.value(), i == 0 ? time.begin.value() : spans[before].end.value());
    }
  }
  expect_like_host(sketch, shape_, gpus_.world, "chain", 3);
}

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const auto graph : {settings::Graph::off, settings::Graph::on}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) all.push_back({graph, seed});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Ways, Plays, testing::ValuesIn(ways()), [](const auto& way) {
  return fmt::format("{}_seed{}", way.param.graph == settings::Graph::on ? "graph" : "plain",
                     way.param.seed);
});

}  // namespace
}  // namespace isoscale::standin
