// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every collective, on groups along every set of axes, as one MPI call and in chunks, on the
// calling thread (blocking calls) and on a worker (non-blocking calls). Whole numbers: results are
// exact.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/mpi/points.hpp"

namespace isoscale::executor {
namespace {

using mesh::Axis;
using mesh::AxisSet;
using program::Collective;
using program::CollectiveKind;
using program::Reduction;
using program::Slice;

struct Variant {
  AxisSet axes;
  program::StreamId stream = 0;
  std::uint64_t elements_per_call = max_elements_per_call;
};

/// A part of f32 is over 64 KiB: no transport sends that much before the receiver has asked for it.
constexpr std::uint64_t part = 20'011;

class Collectives : public testing::TestWithParam<Variant> {
 protected:
  Collectives()
      : point_(
            {.streams = HostStreams::threads, .elements_per_call = GetParam().elements_per_call}),
        members_(mesh::group_members(point_.shape, point_.world.rank(), GetParam().axes)),
        size_(members_.size()),
        me_(static_cast<std::size_t>(
            mesh::group_index(point_.shape, point_.world.rank(), GetParam().axes))) {
    if (GetParam().stream == 0) return;
    // With a stream of its own for the rest of the program, stream 1 gets a thread.
    const Slice other = sketch_.buffer<float>(1);
    sketch_.emit(program::Fill{.dst = other, .shard = {}});
  }

  [[nodiscard]] Collective collective(CollectiveKind kind, Slice send, Slice receive) const {
    return {.kind = kind, .axes = GetParam().axes, .send = send, .receive = receive};
  }

  template <class T>
  std::vector<T> play(const Collective& op, const std::vector<T>& sent,
                      const std::vector<T>& held_before = {}) {
    sketch_.emit(op, GetParam().stream);
    const auto session = point_.prepare(sketch_);
    EXPECT_FALSE(session->facts().folded);
    if (!held_before.empty()) put(*session, op.receive, held_before);
    if (!sent.empty()) put(*session, op.send, sent);
    session->play(program::Section::step, Trace::off);
    return op.receive.buffer == program::no_buffer ? std::vector<T>{}
                                                   : get<T>(*session, op.receive);
  }

  /// What the member at `index` contributes.
  template <class T>
  [[nodiscard]] std::vector<T> values_of(std::size_t index, std::uint64_t count) const {
    return whole_values<T>(count, static_cast<std::uint64_t>(members_[index]));
  }

  template <class T>
  [[nodiscard]] std::vector<T> reduced(std::uint64_t count, Reduction how) const {
    auto result = values_of<T>(0, count);
    for (std::size_t i = 1; i < size_; ++i) {
      const auto other = values_of<T>(i, count);
      std::ranges::transform(result, other, result.begin(), [how](T a, T b) {
        return how == Reduction::sum   ? static_cast<T>(a + b)
               : how == Reduction::min ? std::min(a, b)
                                       : std::max(a, b);
      });
    }
    return result;
  }

  template <class T>
  [[nodiscard]] std::vector<T> all_parts() const {
    std::vector<T> all;
    for (std::size_t i = 0; i < size_; ++i) {
      const auto values = values_of<T>(i, part);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  template <class T>
  [[nodiscard]] static std::vector<T> cut(const std::vector<T>& all, std::size_t index) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(index * part);
    return {first, first + static_cast<std::ptrdiff_t>(part)};
  }

  [[nodiscard]] static Slice sub(Slice slice, std::uint64_t first, std::uint64_t count) {
    slice.offset += first;
    slice.count = count;
    return slice;
  }

  [[nodiscard]] std::int32_t last() const { return static_cast<std::int32_t>(size_) - 1; }

  Point point_;
  std::vector<int> members_;  ///< of this rank's group
  std::size_t size_, me_;
  Sketch sketch_;
};

template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& expected) {
  // Not EXPECT_EQ: it would print all elements.
  const auto [mine, theirs] = std::ranges::mismatch(got, expected);
  EXPECT_EQ(got.size(), expected.size());
  EXPECT_TRUE(mine == got.end() && theirs == expected.end())
      << "first difference at element " << mine - got.begin();
}

TEST_P(Collectives, AllReduceSum) {
  const Slice send = sketch_.buffer<float>(part), receive = sketch_.buffer<float>(part);
  const auto got =
      play(collective(CollectiveKind::all_reduce, send, receive), values_of<float>(me_, part));
  expect_same(got, reduced<float>(part, Reduction::sum));
}

TEST_P(Collectives, AllReduceInPlace) {
  const Slice both = sketch_.buffer<double>(part);
  const auto got =
      play(collective(CollectiveKind::all_reduce, both, both), values_of<double>(me_, part));
  expect_same(got, reduced<double>(part, Reduction::sum));
}

TEST_P(Collectives, EveryReductionOfEveryTypeThatMpiHas) {
  const auto run = [&]<class T>(T /*type*/) {
    for (const Reduction how : {Reduction::sum, Reduction::min, Reduction::max}) {
      sketch_ = Sketch{};
      const Slice both = sketch_.buffer<T>(part);
      if (GetParam().stream != 0) {
        sketch_.emit(program::Fill{.dst = sketch_.buffer<float>(1), .shard = {}});
      }
      Collective op = collective(CollectiveKind::all_reduce, both, both);
      op.reduction = how;
      expect_same(play(op, values_of<T>(me_, part)), reduced<T>(part, how));
    }
  };
  run(double{});
  run(float{});
  run(std::int64_t{});
  run(std::int32_t{});
  run(std::int8_t{});
  run(std::uint8_t{});
}

TEST_P(Collectives, ReduceToTheLast) {
  const Slice send = sketch_.buffer<double>(part), receive = sketch_.buffer<double>(part);
  Collective op = collective(CollectiveKind::reduce, send, receive);
  op.root = last();
  const std::vector<double> before(part, -1);
  const auto got = play(op, values_of<double>(me_, part), before);
  expect_same(got, me_ + 1 == size_ ? reduced<double>(part, Reduction::sum) : before);
}

TEST_P(Collectives, ReduceInPlace) {
  const Slice both = sketch_.buffer<double>(part);
  const auto got =
      play(collective(CollectiveKind::reduce, both, both), values_of<double>(me_, part));
  if (me_ == 0) expect_same(got, reduced<double>(part, Reduction::sum));
}

TEST_P(Collectives, BroadcastFromTheLast) {
  const Slice send = sketch_.buffer<float>(part), receive = sketch_.buffer<float>(part);
  Collective op = collective(CollectiveKind::broadcast, send, receive);
  op.root = last();
  expect_same(play(op, values_of<float>(me_, part)), values_of<float>(size_ - 1, part));
}

TEST_P(Collectives, BroadcastInPlace) {
  const Slice both = sketch_.buffer<float>(part);
  expect_same(play(collective(CollectiveKind::broadcast, both, both), values_of<float>(me_, part)),
              values_of<float>(0, part));
}

TEST_P(Collectives, AllGather) {
  const Slice send = sketch_.buffer<float>(part), receive = sketch_.buffer<float>(part * size_);
  expect_same(
      play(collective(CollectiveKind::all_gather, send, receive), values_of<float>(me_, part)),
      all_parts<float>());
}

TEST_P(Collectives, AllGatherInPlace) {
  const Slice receive = sketch_.buffer<float>(part * size_);
  const Slice send = sub(receive, me_ * part, part);
  expect_same(play(collective(CollectiveKind::all_gather, send, receive),
                   values_of<float>(me_, part), std::vector<float>(part * size_, -1)),
              all_parts<float>());
}

TEST_P(Collectives, ReduceScatter) {
  const Slice send = sketch_.buffer<double>(part * size_), receive = sketch_.buffer<double>(part);
  const auto sent = values_of<double>(me_, part * size_);
  expect_same(play(collective(CollectiveKind::reduce_scatter, send, receive), sent),
              cut(reduced<double>(part * size_, Reduction::sum), me_));
}

TEST_P(Collectives, ReduceScatterIntoTheOwnPart) {
  const Slice send = sketch_.buffer<float>(part * size_);
  const Slice receive = sub(send, me_ * part, part);
  const auto sent = values_of<float>(me_, part * size_);
  expect_same(play(collective(CollectiveKind::reduce_scatter, send, receive), sent),
              cut(reduced<float>(part * size_, Reduction::sum), me_));
}

TEST_P(Collectives, GatherAtTheLast) {
  const bool is_root = me_ + 1 == size_;
  const Slice send = sketch_.buffer<float>(part), receive = sketch_.buffer<float>(part * size_);
  Collective op = collective(CollectiveKind::gather, send, receive);
  op.root = last();
  const auto got = play(op, values_of<float>(me_, part));
  if (is_root) expect_same(got, all_parts<float>());
}

TEST_P(Collectives, GatherInPlace) {
  const Slice receive = sketch_.buffer<float>(part * size_);
  const Slice send = sub(receive, 0, part);
  const auto got =
      play(collective(CollectiveKind::gather, send, receive), values_of<float>(me_, part));
  if (me_ == 0) expect_same(got, all_parts<float>());
}

TEST_P(Collectives, ScatterFromTheLast) {
  const Slice send = sketch_.buffer<float>(part * size_), receive = sketch_.buffer<float>(part);
  Collective op = collective(CollectiveKind::scatter, send, receive);
  op.root = last();
  expect_same(play(op, values_of<float>(me_, part * size_)),
              cut(values_of<float>(size_ - 1, part * size_), me_));
}

TEST_P(Collectives, ScatterInPlace) {
  const Slice send = sketch_.buffer<float>(part * size_);
  const Slice receive = sub(send, 0, part);
  expect_same(
      play(collective(CollectiveKind::scatter, send, receive), values_of<float>(me_, part * size_)),
      cut(values_of<float>(0, part * size_), me_));
}

TEST_P(Collectives, AllToAll) {
  for (const bool in_place : {false, true}) {
    SCOPED_TRACE(in_place);
    sketch_ = Sketch{};
    if (GetParam().stream != 0) {
      sketch_.emit(program::Fill{.dst = sketch_.buffer<float>(1), .shard = {}});
    }
    const Slice send = sketch_.buffer<float>(part * size_);
    const Slice receive = in_place ? send : sketch_.buffer<float>(part * size_);
    std::vector<float> expected;
    for (std::size_t i = 0; i < size_; ++i) {
      const auto theirs = cut(values_of<float>(i, part * size_), me_);
      expected.insert(expected.end(), theirs.begin(), theirs.end());
    }
    expect_same(play(collective(CollectiveKind::all_to_all, send, receive),
                     values_of<float>(me_, part * size_)),
                expected);
  }
}

/// Elements that the member at `from` sends to the one at `to`; some pairs have nothing to say.
std::uint64_t uneven(std::size_t from, std::size_t to) {
  return (from + 2 * to) % 3 == 1 ? 0 : 17'000 + 100 * from + 10 * to;
}

TEST_P(Collectives, UnevenAllToAll) {
  Collective op = collective(CollectiveKind::all_to_all, {}, {});
  std::vector<double> sent, expected;
  for (std::size_t other = 0; other < size_; ++other) {
    op.send_counts.push_back(uneven(me_, other));
    op.receive_counts.push_back(uneven(other, me_));
    sent.insert(sent.end(), uneven(me_, other), static_cast<double>(1000 * me_ + other));
    expected.insert(expected.end(), uneven(other, me_), static_cast<double>(1000 * other + me_));
  }
  op.send = sketch_.buffer<double>(sent.size());
  op.receive = sketch_.buffer<double>(expected.size());
  expect_same(play(op, sent), expected);
}

TEST_P(Collectives, BarrierLetsNobodyPassEarly) {
  // All ranks of a group have begun before any of them has ended.
  sketch_.emit(collective(CollectiveKind::barrier, {}, {}), GetParam().stream);
  const auto session = point_.prepare(sketch_);
  // The last one comes late: those that did not wait for it would have ended by then.
  if (me_ + 1 == size_) std::this_thread::sleep_for(std::chrono::milliseconds{20});
  const PlayTime time = session->play(program::Section::step, Trace::off);
  const auto begins = point_.world.all_gather(time.begin.value());
  for (const int member : members_) {
    EXPECT_LE(begins[static_cast<std::size_t>(member)], time.end.value());
  }
}

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (const AxisSet axes :
       {AxisSet{Axis::tp}, AxisSet{Axis::dp}, AxisSet{Axis::tp, Axis::pp}, mesh::every_axis}) {
    for (const auto stream : {program::StreamId{0}, program::StreamId{1}}) {
      for (const std::uint64_t limit : {max_elements_per_call, std::uint64_t{6'007}}) {
        all.push_back({.axes = axes, .stream = stream, .elements_per_call = limit});
      }
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Variant>& info) {
  std::string name = fmt::format(
      "{}_{}_{}", mesh::to_string(info.param.axes), info.param.stream == 0 ? "calling" : "worker",
      info.param.elements_per_call == max_elements_per_call ? "whole" : "chunks");
  std::ranges::replace(name, '+', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Groups, Collectives, testing::ValuesIn(variants()), name_of);

}  // namespace
}  // namespace isoscale::executor
