// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "simulate/coarse_play.hpp"

namespace isoscale::simulate {
namespace {

/// The numbers of messages' mailboxes, by (axis, offset as the receiver sees it).
using Boxes = std::map<std::pair<mesh::Axis, int>, std::uint32_t>;

class Coarsener {
 public:
  Coarsener(CoarseSet& set, Boxes& boxes, const program::Outline& outline,
            const std::vector<units::Nanoseconds>& costs)
      : set_(set), boxes_(boxes), outline_(outline), costs_(costs) {
    if (costs.size() != outline.ops.size()) {
      throw std::invalid_argument("a table of costs has not one for each op");
    }
    lane_ops_.resize(outline.streams.size());
    for (std::uint32_t i = 0; i < outline.ops.size(); ++i) {
      lane_ops_[outline.ops[i].stream].push_back(i);
    }
    awaited_.resize(outline.ops.size());
    for (const program::Wait& wait : outline.waits) {
      awaited_[lane_ops_[wait.stream][wait.count - 1]] = true;
    }
    ends_in_.resize(outline.ops.size());
  }

  CoarseProgram coarsen() {
    result_.lanes.resize(lane_ops_.size());
    for (std::uint32_t lane = 0; lane < lane_ops_.size(); ++lane) add_lane(lane);
    for (std::uint32_t lane = 0; lane < lane_ops_.size(); ++lane) add_waits(lane);
    return std::move(result_);
  }

 private:
  /// The unfinished end of a lane: the work since the last meeting, and the chain to which
  /// collectives are added until another kind of meeting ends the chain.
  struct Open {
    Work work{};
    double squares = 0;
    bool has_work = false;
    std::int64_t chain = -1;      ///< index of the chain that is being written
    std::uint32_t waiting = ~0U;  ///< op whose waits the next coarse op gets
  };

  void add_lane(std::uint32_t lane) {
    open_ = {};
    for (const std::uint32_t i : lane_ops_[lane]) {
      const program::OutlineOp& op = outline_.ops[i];
      if (op.wait_count > 0) {
        close(lane);
        open_.waiting = i;
      }
      const auto cost = static_cast<double>(costs_[i].value());
      const bool meets = program::communicates(op.kind) && !is_alone(op);
      if (!meets) {
        add_work(op, cost);
      } else if (op.kind == program::OpKind::exchange) {
        close(lane);
        add_exchange(lane, op, cost);
      } else {
        add_collective(lane, op, cost);
      }
      if (awaited_[i]) close(lane);
      // An op that gets no coarse op of its own ends with the coarse op that contains it. If
      // another op waits for this op, the containing coarse op was closed just above.
      ends_in_[i] = static_cast<std::uint32_t>(result_.lanes[lane].size());
    }
    close(lane);
  }

  /// True if the op communicates with no other rank: its axes have one coordinate in this mesh, and
  /// the messages that a rank sends to itself match within the op.
  [[nodiscard]] bool is_alone(const program::OutlineOp& op) const {
    if (op.kind != program::OpKind::exchange) return mesh::group_size(set_.mesh, op.axes) == 1;
    std::map<std::pair<mesh::Axis, int>, int> open;
    for (const program::OutlineTransfer& transfer : outline_.transfers_of(op)) {
      if (set_.mesh[transfer.axis] > 1) return false;
      const bool sends = transfer.direction == program::Direction::send;
      open[{transfer.axis, sends ? -transfer.offset : transfer.offset}] += sends ? 1 : -1;
    }
    return std::all_of(open.begin(), open.end(), [](const auto& box) { return box.second == 0; });
  }

  void add_work(const program::OutlineOp& op, double cost) {
    open_.has_work = true;
    if (program::computes(op.kind)) {
      open_.work.compute += cost;
      open_.squares += cost * cost;
    } else {
      open_.work.fixed += cost;
    }
  }

  Work take_work() {
    Work work = std::exchange(open_.work, {});
    work.spread = std::sqrt(std::exchange(open_.squares, 0));
    open_.has_work = false;
    return work;
  }

  CoarseOp& append(std::uint32_t lane, CoarseKind kind) {
    CoarseOp& op = result_.lanes[lane].emplace_back(CoarseOp{.kind = kind});
    if (open_.waiting != ~0U) {
      // Until add_waits() converts them, wait_first and wait_count refer to the outline's waits.
      op.wait_first = outline_.ops[open_.waiting].wait_begin;
      op.wait_count = outline_.ops[open_.waiting].wait_count;
      open_.waiting = ~0U;
    }
    return op;
  }

  /// Ends the current chain and appends the work that was collected.
  void close(std::uint32_t lane) {
    open_.chain = -1;
    if (open_.has_work || open_.waiting != ~0U) {
      const Work work = take_work();
      append(lane, CoarseKind::work).work = work;
    }
  }

  void add_collective(std::uint32_t lane, const program::OutlineOp& op, double cost) {
    const std::uint32_t channel = channel_of(op);
    auto& ops = result_.lanes[lane];
    if (open_.chain >= 0 && ops[static_cast<std::size_t>(open_.chain)].channel != channel) {
      close(lane);
    }
    if (open_.chain < 0) {
      CoarseOp& chain = append(lane, CoarseKind::chain);
      chain.channel = channel;
      chain.first = static_cast<std::uint32_t>(result_.links.size());
      open_.chain = static_cast<std::int64_t>(ops.size() - 1);
    }
    result_.links.push_back({.before = take_work(), .collective = cost});
    ++ops[static_cast<std::size_t>(open_.chain)].count;
  }

  void add_exchange(std::uint32_t lane, const program::OutlineOp& op, double cost) {
    CoarseOp& exchange = append(lane, CoarseKind::exchange);
    exchange.cost = cost;
    exchange.first = static_cast<std::uint32_t>(result_.messages.size());
    exchange.count = op.transfer_count;
    for (const program::OutlineTransfer& transfer : outline_.transfers_of(op)) {
      const bool sends = transfer.direction == program::Direction::send;
      const auto next = static_cast<std::uint32_t>(boxes_.size());
      const std::pair key{transfer.axis, sends ? -transfer.offset : transfer.offset};
      result_.messages.push_back({.sends = sends,
                                  .box = boxes_.try_emplace(key, next).first->second,
                                  .stride = mesh::stride(set_.mesh, transfer.axis),
                                  .extent = set_.mesh[transfer.axis],
                                  .offset = transfer.offset});
    }
  }

  std::uint32_t channel_of(const program::OutlineOp& op) {
    const CoarseChannel wanted{
        .axes = op.axes, .stream = op.stream, .members = mesh::group_size(set_.mesh, op.axes)};
    const auto found = std::find(set_.channels.begin(), set_.channels.end(), wanted);
    const auto number = static_cast<std::uint32_t>(found - set_.channels.begin());
    if (found == set_.channels.end()) set_.channels.push_back(wanted);
    return number;
  }

  void add_waits(std::uint32_t lane) {
    for (CoarseOp& op : result_.lanes[lane]) {
      const std::uint32_t first = op.wait_first;
      op.wait_first = static_cast<std::uint32_t>(result_.waits.size());
      for (std::uint32_t w = first; w < first + op.wait_count; ++w) {
        const program::Wait& wait = outline_.waits[w];
        const std::uint32_t count = ends_in_[lane_ops_[wait.stream][wait.count - 1]];
        CoarseOp& before = result_.lanes[wait.stream][count - 1];
        if (before.slot < 0) before.slot = static_cast<std::int32_t>(result_.slots++);
        result_.waits.push_back({.lane = wait.stream, .count = count, .slot = before.slot});
      }
    }
  }

  CoarseSet& set_;
  Boxes& boxes_;
  const program::Outline& outline_;
  const std::vector<units::Nanoseconds>& costs_;
  std::vector<std::vector<std::uint32_t>> lane_ops_;
  std::vector<bool> awaited_;
  std::vector<std::uint32_t> ends_in_;  ///< by awaited op: coarse ops of its lane up to its end
  Open open_;
  CoarseProgram result_;
};

}  // namespace

CoarseSet coarsen(const mesh::Shape& mesh, const std::vector<program::Outline>& outlines,
                  const std::vector<std::uint32_t>& outline_of_rank,
                  const std::vector<std::vector<units::Nanoseconds>>& tables,
                  const std::vector<std::uint32_t>& table_of_rank) {
  CoarseSet set{.mesh = mesh, .programs = {}, .program_of_rank = {}, .channels = {}};
  Boxes boxes;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
  set.program_of_rank.reserve(outline_of_rank.size());
  for (std::size_t rank = 0; rank < outline_of_rank.size(); ++rank) {
    const std::uint32_t outline = outline_of_rank[rank], table = table_of_rank.at(rank);
    const auto next = static_cast<std::uint32_t>(set.programs.size());
    const auto [entry, is_new] = known.try_emplace({outline, table}, next);
    if (is_new) {
      set.programs.push_back(Coarsener{set, boxes, outlines[outline], tables[table]}.coarsen());
      set.lanes = std::max(set.lanes, static_cast<std::uint32_t>(set.programs.back().lanes.size()));
    }
    set.program_of_rank.push_back(entry->second);
  }
  // Programs with fewer lanes than others get empty lanes, so that every rank has the same number
  // of lanes.
  for (CoarseProgram& program : set.programs) program.lanes.resize(set.lanes);
  set.boxes = static_cast<std::uint32_t>(boxes.size());
  return set;
}

}  // namespace isoscale::simulate
