// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "simulate/coarse_play.hpp"

namespace isoscale::simulate {
namespace {

class Coarsener {
 public:
  Coarsener(CoarseSet& set, const program::Outline& whole)
      : mesh_(set.programs.mesh),
        whole_(whole),
        result_(set.programs.outlines.emplace_back()),
        times_(set.times.emplace_back()),
        lanes_(whole.streams.size()) {}

  void add_ops(const std::vector<units::Nanoseconds>& costs) {
    result_.streams = whole_.streams;
    result_.transfers = whole_.transfers;
    const std::vector<bool> awaited = awaited_ops();
    for (std::uint32_t i = 0; i < whole_.ops.size(); ++i) {
      add(i, costs[i].value(), awaited[i]);
    }
    for (program::StreamId stream = 0; stream < lanes_.size(); ++stream) close(stream);
  }

 private:
  static constexpr std::uint32_t none = ~0U;
  struct Lane {
    std::uint32_t ops = 0;  ///< of the coarse program
    /// counts[i] is the number of coarse ops up to the end of the lane's op i, if another op waits
    /// for this op.
    std::vector<std::uint32_t> counts;
    bool is_open = false;          ///< there is work since the last coarse op
    std::uint32_t waiting = none;  ///< op whose waits the next coarse op gets
    CoarseTime time{};             ///< of the next coarse op; `spread` is still a sum of squares
  };

  [[nodiscard]] std::vector<bool> awaited_ops() const {
    std::vector<std::vector<std::uint32_t>> lane_ops(lanes_.size());
    for (std::uint32_t i = 0; i < whole_.ops.size(); ++i) {
      lane_ops[whole_.ops[i].stream].push_back(i);
    }
    std::vector<bool> awaited(whole_.ops.size());
    for (const program::Wait& wait : whole_.waits) {
      awaited[lane_ops[wait.stream][wait.count - 1]] = true;
    }
    return awaited;
  }

  void add(std::uint32_t i, std::int64_t nanoseconds, bool is_awaited) {
    const auto cost = static_cast<double>(nanoseconds);
    const program::OutlineOp& op = whole_.ops[i];
    Lane& lane = lanes_[op.stream];
    if (op.wait_count > 0) {
      close(op.stream);
      lane.waiting = i;
    }
    lane.is_open = true;
    if (program::communicates(op.kind) && !is_alone(op)) {
      lane.time.meeting = nanoseconds;
      close(op.stream, &op);
    } else if (program::computes(op.kind)) {
      lane.time.compute += cost;
      lane.time.spread += cost * cost;
    } else {
      lane.time.fixed += cost;
    }
    if (is_awaited) close(op.stream);
    lane.counts.push_back(lane.ops);
  }

  /// True if the op communicates with no other rank: its axes have one coordinate in this mesh, and
  /// the messages that a rank sends to itself match within the op.
  [[nodiscard]] bool is_alone(const program::OutlineOp& op) const {
    if (op.kind != program::OpKind::exchange) return mesh::group_size(mesh_, op.axes) == 1;
    std::map<std::pair<mesh::Axis, int>, int> open;
    for (const program::OutlineTransfer& transfer : whole_.transfers_of(op)) {
      if (mesh_[transfer.axis] > 1) return false;
      const bool sends = transfer.direction == program::Direction::send;
      open[{transfer.axis, sends ? -transfer.offset : transfer.offset}] += sends ? 1 : -1;
    }
    return std::all_of(open.begin(), open.end(), [](const auto& box) { return box.second == 0; });
  }

  /// Appends an op with the work since the lane's last op, if there is any, and with a meeting if
  /// it is given.
  void close(program::StreamId stream, const program::OutlineOp* meeting = nullptr) {
    Lane& lane = lanes_[stream];
    if (!lane.is_open) return;
    program::OutlineOp op{.kind = program::OpKind::copy, .stream = stream, .place = {}, .axes = {}};
    if (meeting != nullptr) op = *meeting;
    op.wait_begin = static_cast<std::uint32_t>(result_.waits.size());
    if (lane.waiting != none) {
      for (const program::Wait& wait : whole_.waits_of(whole_.ops[lane.waiting])) {
        result_.waits.push_back(
            {.stream = wait.stream, .count = lanes_[wait.stream].counts.at(wait.count - 1)});
      }
    }
    op.wait_count = static_cast<std::uint32_t>(result_.waits.size()) - op.wait_begin;
    ++lane.ops;
    result_.ops.push_back(op);
    lane.time.spread = std::sqrt(lane.time.spread);
    times_.push_back(std::exchange(lane.time, {}));
    lane.is_open = false;
    lane.waiting = none;
  }

  const mesh::Shape& mesh_;
  const program::Outline& whole_;
  program::Outline& result_;
  std::vector<CoarseTime>& times_;
  std::vector<Lane> lanes_;
};

}  // namespace

CoarseSet coarsen(const mesh::Shape& mesh, const std::vector<program::Outline>& outlines,
                  const std::vector<std::uint32_t>& outline_of_rank,
                  const std::vector<std::vector<units::Nanoseconds>>& tables,
                  const std::vector<std::uint32_t>& table_of_rank) {
  CoarseSet coarse{.programs = {.mesh = mesh, .outlines = {}, .outline_of_rank = {}}, .times = {}};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
  for (std::size_t rank = 0; rank < outline_of_rank.size(); ++rank) {
    const std::uint32_t outline = outline_of_rank[rank], table = table_of_rank.at(rank);
    const auto next = static_cast<std::uint32_t>(known.size());
    const auto [entry, is_new] = known.try_emplace({outline, table}, next);
    if (is_new) Coarsener{coarse, outlines[outline]}.add_ops(tables[table]);
    coarse.programs.outline_of_rank.push_back(entry->second);
  }
  return coarse;
}

}  // namespace isoscale::simulate
