// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every collective, on groups along every set of axes, on every executor, in whole numbers.

#include <chrono>
#include <thread>

#include "tests/mpi/points.hpp"

namespace isoscale::executor {
namespace {

using mesh::Axis;
using mesh::AxisSet;
using namespace program;  // NOLINT: the ops

/// How the memory of what is received lies to that of what is sent.
enum class Place : std::uint8_t { apart, same, send_in_receive, receive_in_send };

/// A collective: how many parts of it a member sends and receives; all: one of each member.
struct Row {
  static constexpr int all = -1;
  const char* name;
  CollectiveKind kind;
  int sends = 1, receives = 1;
  Place place = Place::apart;
};

constexpr std::array<Row, 16> rows{{
    {"all_reduce", CollectiveKind::all_reduce},
    {"all_reduce in place", CollectiveKind::all_reduce, 1, 1, Place::same},
    {"reduce", CollectiveKind::reduce},
    {"reduce in place", CollectiveKind::reduce, 1, 1, Place::same},
    {"broadcast", CollectiveKind::broadcast},
    {"broadcast in place", CollectiveKind::broadcast, 1, 1, Place::same},
    {"all_gather", CollectiveKind::all_gather, 1, Row::all},
    {"all_gather in place", CollectiveKind::all_gather, 1, Row::all, Place::send_in_receive},
    {"reduce_scatter", CollectiveKind::reduce_scatter, Row::all, 1},
    {"reduce_scatter into the own part", CollectiveKind::reduce_scatter, Row::all, 1,
     Place::receive_in_send},
    {"gather", CollectiveKind::gather, 1, Row::all},
    {"gather in place", CollectiveKind::gather, 1, Row::all, Place::send_in_receive},
    {"scatter", CollectiveKind::scatter, Row::all, 1},
    {"scatter in place", CollectiveKind::scatter, Row::all, 1, Place::receive_in_send},
    {"all_to_all", CollectiveKind::all_to_all, Row::all, Row::all},
    {"all_to_all in place", CollectiveKind::all_to_all, Row::all, Row::all, Place::same},
}};

class Collectives : public testing::TestWithParam<std::tuple<Way, AxisSet>> {
 protected:
  /// Plays a collective twice, and a copy on another stream of what it gives; returns the copy.
  template <class T>
  std::vector<T> play(const Collective& op, const std::vector<T>& sent) {
    const auto other = static_cast<program::StreamId>(1 - way_.stream);
    const std::uint64_t received = op.receive.count;
    const Slice copy = sketch_.buffer<T>(received);
    const std::uint32_t done = sketch_.emit(op, way_.stream);
    sketch_.emit(program::Copy{.rows = 1,
                               .columns = static_cast<std::uint32_t>(received),
                               .src = Sketch::dense(op.receive, received),
                               .dst = Sketch::dense(copy, received)},
                 other, {{way_.stream, done}});
    const auto session = point_.prepare(sketch_);
    EXPECT_EQ(session->facts().folded, way_.folds);
    for (int play = 0; play < 2; ++play) {
      put(*session, op.receive, std::vector<T>(received, static_cast<T>(-1)));
      put(*session, op.send, sent);
      session->play({.section = Section::step});
    }
    sketch_ = {};
    return get<T>(*session, copy);
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
  [[nodiscard]] std::optional<std::vector<T>> expected(const Row& row, std::size_t root,
                                                       Reduction how) const {
    using enum CollectiveKind;
    const std::uint64_t part = way_.part, sent = parts(row.sends) * part;
    const bool gathers = row.kind == gather || row.kind == all_gather;
    const bool reduces = row.kind == all_reduce || row.kind == reduce || row.kind == reduce_scatter;
    if (me_ != root && row.kind == reduce && row.place == Place::apart) {
      return std::vector<T>(part, static_cast<T>(-1));  // what was there
    }
    if (me_ != root && (row.kind == reduce || row.kind == gather)) return std::nullopt;
    std::vector<T> result;
    for (std::size_t i = 0; i < size_; ++i) {
      const bool counts = gathers || row.kind == all_to_all || i == (reduces ? me_ : root);
      if (!counts) continue;
      const auto from = reduces ? reduced<T>(sent, how) : values_of<T>(i, sent);
      const auto first =
          from.begin() + static_cast<std::ptrdiff_t>(row.sends == Row::all ? me_ * part : 0);
      result.insert(result.end(), first, first + static_cast<std::ptrdiff_t>(part));
    }
    return result;
  }

  template <class T>
  void test(const Row& row, Reduction how = Reduction::sum) {
    SCOPED_TRACE(testing::Message() << row.name << " of " << sizeof(T) << " bytes");
    const bool is_made_of_messages = row.kind >= CollectiveKind::gather;
    if (is_made_of_messages && row.place != Place::apart && !way_.has_messages_in_place) return;
    // In place, the root is the first, whose part is; else the last.
    const std::size_t root = row.place == Place::apart ? size_ - 1 : 0;
    const bool is_rooted =
        row.kind == CollectiveKind::gather || row.kind == CollectiveKind::scatter;
    const std::uint64_t own = (is_rooted ? root : me_) * way_.part;
    const std::uint64_t sent = parts(row.sends) * way_.part;
    const std::uint64_t received = parts(row.receives) * way_.part;
    Collective op{.kind = row.kind, .reduction = how, .axes = std::get<AxisSet>(GetParam())};
    op.root = static_cast<std::int32_t>(root);
    op.send = sketch_.buffer<T>(std::max(sent, received));
    op.receive = row.place == Place::apart ? sketch_.buffer<T>(op.send.count) : op.send;
    op.send.count = sent;
    op.receive.count = received;
    if (row.place == Place::send_in_receive) op.send.offset = own;
    if (row.place == Place::receive_in_send) op.receive.offset = own;
    const auto got = play(op, values_of<T>(me_, sent));
    // Not EXPECT_EQ: it would print all elements.
    if (const auto right = expected<T>(row, root, how)) {
      EXPECT_TRUE(got == *right);
    }
  }

  [[nodiscard]] std::uint64_t parts(int count) const { return count == Row::all ? size_ : 1; }

  const Way& way_ = std::get<Way>(GetParam());
  Point point_{way_};
  std::vector<int> members_ =  ///< of this rank's group
      mesh::group_members(point_.shape, point_.world.rank(), std::get<AxisSet>(GetParam()));
  std::size_t size_ = members_.size();
  std::size_t me_ = static_cast<std::size_t>(
      mesh::group_index(point_.shape, point_.world.rank(), std::get<AxisSet>(GetParam())));
  Sketch sketch_;
};

TEST_P(Collectives, GiveWhatTheirDefinitionsSay) {
  bool is_wide = false;
  for (const Row& row : rows) {
    is_wide = !is_wide;
    is_wide ? test<double>(row) : test<float>(row);
    test<std::int8_t>(row);
  }
}

TEST_P(Collectives, EveryReductionOfEveryType) {
  std::size_t turn = 0;
  const auto run = [&]<class T>(T /*type*/) {
    for (const Reduction how : {Reduction::sum, Reduction::min, Reduction::max}) {
      // Over the turns, all_reduce, reduce and reduce_scatter each meet every type and reduction.
      test<T>(rows[std::array{0U, 2U, 8U}[(turn + turn / 3) % 3]], how);
      ++turn;
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
  Collective op{.kind = CollectiveKind::all_to_all, .axes = std::get<AxisSet>(GetParam())};
  std::vector<double> sent, expected;
  for (std::size_t other = 0; other < size_; ++other) {
    op.send_counts.push_back(uneven(me_, other));
    op.receive_counts.push_back(uneven(other, me_));
    sent.insert(sent.end(), uneven(me_, other), static_cast<double>(1000 * me_ + other));
    expected.insert(expected.end(), uneven(other, me_), static_cast<double>(1000 * other + me_));
  }
  op.send = sketch_.buffer<double>(sent.size());
  op.receive = sketch_.buffer<double>(expected.size());
  EXPECT_TRUE(play(op, sent) == expected);
}

TEST_P(Collectives, BarrierLetsNobodyPassEarly) {
  // All ranks of a group have begun before any of them has ended.
  sketch_.emit(Collective{.kind = CollectiveKind::barrier, .axes = std::get<AxisSet>(GetParam())},
               way_.stream);
  sketch_.emit(program::Fill{.dst = sketch_.buffer<float>(1), .shard = {}});
  const auto session = point_.prepare(sketch_);
  for (int play = 0; play < 3; ++play) {
    // The last one comes late: those that did not wait for it would have ended by then.
    if (me_ + 1 == size_) std::this_thread::sleep_for(std::chrono::milliseconds{20});
    const units::Nanoseconds begin = comm::now();  // the ranks' clocks are one machine's
    session->play({.section = Section::step, .trace = Trace::on});
    const units::Nanoseconds end = comm::now();
    const auto begins = point_.world.all_gather(begin.value());
    for (const int member : members_) {
      EXPECT_LE(begins[static_cast<std::size_t>(member)], end.value());
    }
  }
}

std::string name_of(const testing::TestParamInfo<std::tuple<Way, AxisSet>>& info) {
  std::string name = mesh::to_string(std::get<AxisSet>(info.param)) + "_";
  std::ranges::replace(name, '+', '_');
  return name + std::get<Way>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Groups, Collectives,
                         testing::Combine(testing::ValuesIn(ways()),
                                          testing::Values(AxisSet{Axis::tp}, AxisSet{Axis::dp},
                                                          AxisSet{Axis::tp, Axis::pp},
                                                          mesh::every_axis)),
                         name_of);

}  // namespace
}  // namespace isoscale::executor
