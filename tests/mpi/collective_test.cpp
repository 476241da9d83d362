// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every collective, on groups along every set of axes, as one MPI call and in chunks, on the
// calling thread (blocking calls) and on a worker (non-blocking calls). Whole numbers: results are
// exact.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
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

/// How the memory of what is received lies to that of what is sent.
enum class Place : std::uint8_t { apart, same, send_in_receive, receive_in_send };

/// A collective: how many parts of it a member sends and receives; all: one of each member.
struct Row {
  static constexpr int all = -1;
  const char* name;
  CollectiveKind kind;
  int sends = 1, receives = 1;
  Place place = Place::apart;
  bool is_wide = false;  ///< f64, not f32
};

constexpr std::array<Row, 16> rows{{
    {"all_reduce", CollectiveKind::all_reduce},
    {"all_reduce in place", CollectiveKind::all_reduce, 1, 1, Place::same, true},
    {"reduce", CollectiveKind::reduce, 1, 1, Place::apart, true},
    {"reduce in place", CollectiveKind::reduce, 1, 1, Place::same, true},
    {"broadcast", CollectiveKind::broadcast},
    {"broadcast in place", CollectiveKind::broadcast, 1, 1, Place::same},
    {"all_gather", CollectiveKind::all_gather, 1, Row::all},
    {"all_gather in place", CollectiveKind::all_gather, 1, Row::all, Place::send_in_receive},
    {"reduce_scatter", CollectiveKind::reduce_scatter, Row::all, 1, Place::apart, true},
    {"reduce_scatter into the own part", CollectiveKind::reduce_scatter, Row::all, 1,
     Place::receive_in_send},
    {"gather", CollectiveKind::gather, 1, Row::all},
    {"gather in place", CollectiveKind::gather, 1, Row::all, Place::send_in_receive},
    {"scatter", CollectiveKind::scatter, Row::all, 1},
    {"scatter in place", CollectiveKind::scatter, Row::all, 1, Place::receive_in_send},
    {"all_to_all", CollectiveKind::all_to_all, Row::all, Row::all},
    {"all_to_all in place", CollectiveKind::all_to_all, Row::all, Row::all, Place::same},
}};

template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& expected) {
  // Not EXPECT_EQ: it would print all elements.
  const auto [mine, theirs] = std::ranges::mismatch(got, expected);
  EXPECT_EQ(got.size(), expected.size());
  EXPECT_TRUE(mine == got.end() && theirs == expected.end())
      << "first difference at element " << mine - got.begin();
}

class Collectives : public testing::TestWithParam<Variant> {
 protected:
  Collectives()
      : point_(
            {.streams = HostStreams::threads, .elements_per_call = GetParam().elements_per_call}),
        members_(mesh::group_members(point_.shape, point_.world.rank(), GetParam().axes)),
        size_(members_.size()),
        me_(static_cast<std::size_t>(
            mesh::group_index(point_.shape, point_.world.rank(), GetParam().axes))) {}

  void emit(const Collective& op) {
    if (GetParam().stream != 0) {
      // With a stream of its own for the rest of the program, stream 1 gets a thread.
      sketch_.emit(program::Fill{.dst = sketch_.buffer<float>(1), .shard = {}});
    }
    sketch_.emit(op, GetParam().stream);
  }

  template <class T>
  std::vector<T> play(const Collective& op, const std::vector<T>& sent) {
    emit(op);
    const auto session = point_.prepare(sketch_);
    EXPECT_FALSE(session->facts().folded);
    put(*session, op.receive, std::vector<T>(op.receive.count, static_cast<T>(-1)));
    put(*session, op.send, sent);
    session->play(program::Section::step, Trace::off);
    sketch_ = {};
    return get<T>(*session, op.receive);
  }

  /// Returns the values that the member at `index` contributes.
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

  /// Returns what this member receives when the root is at `root`; nullopt where that is undefined.
  template <class T>
  [[nodiscard]] std::optional<std::vector<T>> expected(const Row& row, std::size_t root) const {
    using enum CollectiveKind;
    const bool gathers = row.kind == gather || row.kind == all_gather;
    const bool reduces = row.kind == all_reduce || row.kind == reduce || row.kind == reduce_scatter;
    if (me_ != root && row.kind == reduce && row.place == Place::apart) {
      return std::vector<T>(part, -1);  // what was there
    }
    if (me_ != root && (row.kind == reduce || row.kind == gather)) return std::nullopt;
    const std::uint64_t sent = parts(row.sends) * part;
    std::vector<T> result;
    for (std::size_t i = 0; i < size_; ++i) {
      const bool counts = gathers || row.kind == all_to_all || i == (reduces ? me_ : root);
      if (!counts) continue;
      const auto from = reduces ? reduced<T>(sent, Reduction::sum) : values_of<T>(i, sent);
      const std::size_t first = row.sends == Row::all ? me_ * part : 0;
      result.insert(result.end(), from.begin() + static_cast<std::ptrdiff_t>(first),
                    from.begin() + static_cast<std::ptrdiff_t>(first + part));
    }
    return result;
  }

  template <class T>
  void test(const Row& row) {
    SCOPED_TRACE(row.name);
    // In place, the root is the first, whose part is; else the last.
    const std::size_t root = row.place == Place::apart ? size_ - 1 : 0;
    Collective op{
        .kind = row.kind, .axes = GetParam().axes, .root = static_cast<std::int32_t>(root)};
    const bool is_rooted =
        row.kind == CollectiveKind::gather || row.kind == CollectiveKind::scatter;
    const std::size_t own = (is_rooted ? root : me_) * part;
    const std::uint64_t sent = parts(row.sends) * part;
    op.send = sketch_.buffer<T>(std::max(sent, parts(row.receives) * part));
    op.receive = row.place == Place::apart ? sketch_.buffer<T>(op.send.count) : op.send;
    op.send.count = sent;
    op.receive.count = parts(row.receives) * part;
    if (row.place == Place::send_in_receive) op.send.offset = own;
    if (row.place == Place::receive_in_send) op.receive.offset = own;
    const auto got = play(op, values_of<T>(me_, sent));
    if (const auto right = expected<T>(row, root)) expect_same(got, *right);
  }

  [[nodiscard]] std::uint64_t parts(int count) const { return count == Row::all ? size_ : 1; }

  Point point_;
  std::vector<int> members_;  ///< of this rank's group
  std::size_t size_, me_;
  Sketch sketch_;
};

TEST_P(Collectives, GiveWhatTheirDefinitionsSay) {
  for (const Row& row : rows) row.is_wide ? test<double>(row) : test<float>(row);
}

TEST_P(Collectives, EveryReductionOfEveryTypeThatMpiHas) {
  const auto run = [&]<class T>(T /*type*/) {
    for (const Reduction how : {Reduction::sum, Reduction::min, Reduction::max}) {
      const Slice both = sketch_.buffer<T>(part);
      const Collective op{.kind = CollectiveKind::all_reduce,
                          .reduction = how,
                          .axes = GetParam().axes,
                          .send = both,
                          .receive = both};
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

/// Elements that the member at `from` sends to the one at `to`; some pairs have nothing to say.
std::uint64_t uneven(std::size_t from, std::size_t to) {
  return (from + 2 * to) % 3 == 1 ? 0 : 17'000 + 100 * from + 10 * to;
}

TEST_P(Collectives, UnevenAllToAll) {
  Collective op{.kind = CollectiveKind::all_to_all, .axes = GetParam().axes};
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
  emit({.kind = CollectiveKind::barrier, .axes = GetParam().axes});
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
