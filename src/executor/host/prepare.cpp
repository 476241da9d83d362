// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/prepare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"
#include "executor/host/prepare_ops.hpp"

namespace isoscale::executor::host {
namespace {

/// Numbers the messages of each link in program order, as the rank at its other end does.
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
                  const PrepareOptions& options)
      : resolver_(resolver), communicators_(communicators), options_(options) {}

  Call prepare(const program::Op& op) {
    return std::visit([&](const auto& payload) { return call(op, payload); }, op.payload);
  }

 private:
  template <class Payload>
  Call call(const program::Op& /*op*/, const Payload& payload) {
    return prepare_op(resolver_, payload);
  }

  Call call(const program::Op& op, const program::Collective& payload) {
    return prepare_op(resolver_, payload, op.stream, communicators_, options_.elements_per_call);
  }

  Call call(const program::Op& /*op*/, const program::Update& payload) {
    if (payload.optimizer == program::Optimizer::sgd) {
      return prepare_op(resolver_, payload, Powers::keep);
    }
    const bool is_first = advanced_.insert(resolver_.address(payload.powers)).second;
    return prepare_op(resolver_, payload, is_first ? Powers::advance : Powers::keep);
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
  LinkSequence sequence_;
  std::set<const std::byte*> advanced_;  ///< powers that an earlier update of the section advances
};

std::string describe(const program::Op& op, std::uint32_t index) {
  std::string text =
      fmt::format("op {}, {} ({}", index, program::name(program::kind_of(op.payload)),
                  program::name(op.place.phase));
  if (op.place.layer >= 0) text += fmt::format(", layer {}", op.place.layer);
  if (op.place.microbatch >= 0) text += fmt::format(", microbatch {}", op.place.microbatch);
  return text + ")";
}

}  // namespace

PreparedSection prepare(const Resolver& resolver, const program::Program& section,
                        const Communicators& communicators, const PrepareOptions& options) {
  SectionPreparer preparer{resolver, communicators, options};
  const bool folds = options.folding == Folding::folded;
  PreparedSection result;
  result.lanes.resize(1);
  result.op_count = static_cast<std::uint32_t>(section.ops.size());
  if (!folds) result.waits = section.waits;
  for (std::uint32_t i = 0; i < result.op_count; ++i) {
    const program::Op& op = section.ops[i];
    const std::size_t lane = folds ? 0 : op.stream;
    if (lane >= result.lanes.size()) result.lanes.resize(lane + 1);
    try {
      result.lanes[lane].push_back({.call = preparer.prepare(op),
                                    .index = i,
                                    .awaited = !folds && op.awaited,
                                    .wait_count = folds ? std::uint8_t{0} : op.wait_count,
                                    .wait_begin = op.wait_begin});
    } catch (const base::Error& error) {
      throw base::Error(fmt::format("{}: {}", describe(op, i), error.what()), error.where());
    }
  }
  return result;
}

std::size_t scratch_bytes(const PreparedSection& section) {
  std::size_t bytes = 0;
  for (const std::vector<PreparedOp>& lane : section.lanes) {
    for (const PreparedOp& op : lane) {
      if (const auto* call = std::get_if<CollectiveCall>(&op.call)) bytes += call->scratch.size();
    }
  }
  return bytes;
}

}  // namespace isoscale::executor::host
