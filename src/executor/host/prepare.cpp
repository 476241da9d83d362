// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/prepare.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "executor/host/fault_injection.hpp"
#include "executor/host/prepare_ops.hpp"
#include "executor/op_requirements.hpp"

namespace isoscale::executor::host {
namespace {

/// Numbers the messages of each link in program order, which gives the same numbers on both of its
/// ranks.
class LinkSequence {
 public:
  std::uint64_t next(mesh::Axis axis, std::int32_t sender_offset, program::Direction direction) {
    return next_[{axis, sender_offset, direction}]++;
  }

 private:
  std::map<std::tuple<mesh::Axis, std::int32_t, program::Direction>, std::uint64_t> next_;
};

class SectionPreparer {
 public:
  SectionPreparer(const Resolver& resolver, const Communicators& communicators,
                  const PrepareOptions& options, OwnReductions& reductions)
      : resolver_(resolver),
        communicators_(communicators),
        options_(options),
        reductions_(reductions) {}

  Call prepare(const program::Op& op) {
    return std::visit([&](const auto& payload) { return call(op, payload); }, op.payload);
  }

 private:
  template <class Payload>
  Call call(const program::Op& /*op*/, const Payload& payload) {
    return prepare_op(resolver_, payload);
  }

  /// Only checks that the slice lies within its buffer: the host has one kind of memory, so there
  /// is nothing to advise.
  Call call(const program::Op& /*op*/, const program::Advise& payload) {
    static_cast<void>(resolver_.address(payload.slice));
    return NoCall{};
  }

  Call call(const program::Op& op, const program::Collective& payload) {
    return prepare_op(resolver_, payload, op.stream, communicators_, options_.elements_per_call,
                      options_.staging[op.stream], reductions_);
  }

  Call call(const program::Op& /*op*/, const program::Update& payload) {
    Powers powers = Powers::keep;
    if (payload.optimizer == program::Optimizer::adam) {
      const bool is_first = advanced_.insert(resolver_.address(payload.powers)).second;
      if (is_first) powers = Powers::advance;
    }
    return prepare_op(resolver_, payload, powers);
  }

  Call call(const program::Op& /*op*/, const program::Exchange& payload) {
    ExchangeCall result;
    for (const program::Transfer& transfer : payload.transfers) {
      const bool sends = transfer.direction == program::Direction::send;
      const std::int32_t sender_offset = sends ? transfer.offset : -transfer.offset;
      const std::uint64_t number = sequence_.next(transfer.axis, sender_offset, transfer.direction);
      const int peer =
          mesh::neighbour(resolver_.mesh(), resolver_.rank(), transfer.axis, transfer.offset);
      const Message whole{.data = resolver_.address(transfer.slice),
                          .type = mpi_type(resolver_.dtype(transfer.slice)),
                          .peer = mesh::group_index(resolver_.mesh(), peer, transfer.axis),
                          .tag = communicators_.tag(transfer.axis, sender_offset, number),
                          .communicator = communicators_.exchange(transfer.axis)};
      append_messages(sends ? result.sends : result.receives, whole, transfer.slice.count,
                      resolver_.element_size(transfer.slice), options_.elements_per_call);
    }
    return result;
  }

  const Resolver& resolver_;
  const Communicators& communicators_;
  PrepareOptions options_;
  OwnReductions& reductions_;
  LinkSequence sequence_;
  std::set<const std::byte*> advanced_;  ///< powers that earlier updates of the section advance
};

/// Returns the GEMM in which a rank gets stuck: the first in the second half of the section, or the
/// last of all if there is none.
std::optional<std::uint32_t> middle_gemm(const program::Program& section) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t i = 0; i < section.ops.size(); ++i) {
    if (program::kind_of(section.ops[i].payload) != program::OpKind::gemm) continue;
    found = i;
    if (2 * std::size_t{i} >= section.ops.size()) break;
  }
  return found;
}

}  // namespace

PreparedSection prepare(const Resolver& resolver, const program::Program& section,
                        const Communicators& communicators, const PrepareOptions& options) {
  const bool folds = options.folding == Folding::folded;
  PreparedSection result;
  SectionPreparer preparer{resolver, communicators, options, result.reductions};
  OpSlower slower{options.faults, resolver.mesh(), resolver.rank(), result.least_times};
  const auto stuck_at =
      options.faults.stuck == program::Stuck::no ? std::nullopt : middle_gemm(section);
  result.lanes.resize(1);
  result.op_count = static_cast<std::uint32_t>(section.ops.size());
  if (!folds) result.waits = section.waits;
  for (std::uint32_t i = 0; i < result.op_count; ++i) {
    const program::Op& op = section.ops[i];
    const std::size_t lane = folds ? 0 : op.stream;
    if (lane >= result.lanes.size()) result.lanes.resize(lane + 1);
    Call call = naming(op, i, [&] { return preparer.prepare(op); });
    if (options.faults.any()) call = slower.slowed(std::move(call), op, i, lane);
    if (i == stuck_at) {
      call = std::make_unique<StuckCall>(StuckCall{
          .call = std::move(call), .how = options.faults.stuck, .rank = options.faults.stuck_rank});
    }
    result.lanes[lane].push_back({.call = std::move(call),
                                  .index = i,
                                  .awaited = !folds && op.awaited,
                                  .wait_count = folds ? std::uint8_t{0} : op.wait_count,
                                  .wait_begin = op.wait_begin});
  }
  return result;
}

}  // namespace isoscale::executor::host
