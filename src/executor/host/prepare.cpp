// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/prepare.hpp"

#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "executor/host/fault_injection.hpp"
#include "executor/op_requirements.hpp"

namespace isoscale::executor::host {
namespace {

/// Looks up the operands of an op. Throws base::Error if the host cannot compute in their types.
template <class Op>
Arguments<Op> arguments(const Resolver& resolver, const Op& op) {
  return arguments_of(resolver, op, [&](const TypedOperand& operand, const program::Slice&) {
    require_computed(program::kind_of(op), operand);
  });
}

/// Makes the call of an op that does not communicate.
class LocalOp {
 public:
  LocalOp(const Resolver& resolver, Powers powers) : resolver_(resolver), powers_(powers) {}

  Call operator()(const program::Gemm& op) const { return running(gemm_call(resolver_, op)); }
  Call operator()(const program::Copy& op) const { return running(strided_copy(resolver_, op)); }
  /// Checks that the slice lies within its buffer and otherwise ignores the advice, since the host
  /// has only one kind of memory.
  Call operator()(const program::Advise& op) const {
    static_cast<void>(resolver_.address(op.slice));
    return [](Player& /*player*/) {};
  }
  Call operator()(const program::Cast& op) const {
    if (program::exists(op.transposed) || op.scaling != program::CastScale::fixed) {
      throw base::Error("a cast with a transposed copy or a measured scale: the host has neither");
    }
    return running(arguments(resolver_, op));
  }
  Call operator()(const program::Update& op) const {
    Arguments<program::Update> call = arguments(resolver_, op);
    call.powers = powers_;
    return running(std::move(call));
  }
  template <class Op>
  Call operator()(const Op& op) const {
    if constexpr (std::is_same_v<Op, program::Collective> ||
                  std::is_same_v<Op, program::Exchange>) {
      throw std::logic_error("this op communicates");
    } else {
      return running(arguments(resolver_, op));
    }
  }

 private:
  template <class Looked>
  static Call running(Looked call) {
    return [call = std::move(call)](Player& /*player*/) { host::run(call); };
  }

  const Resolver& resolver_;
  Powers powers_;
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
    if (const auto* const collective = std::get_if<program::Collective>(&op.payload)) {
      return [call = collective_call(resolver_, *collective, op.stream, communicators_,
                                     options_.elements_per_call, options_.staging[op.stream],
                                     reductions_)](Player& player) { host::run(call, player); };
    }
    if (const auto* const exchange = std::get_if<program::Exchange>(&op.payload)) {
      return [call = exchange_call(*exchange)](Player& player) { host::run(call, player); };
    }
    return prepare_local(resolver_, op.payload, powers_of(op));
  }

 private:
  Powers powers_of(const program::Op& op) {
    const auto* const update = std::get_if<program::Update>(&op.payload);
    const bool advances = update != nullptr && update->optimizer == program::Optimizer::adam &&
                          advanced_.insert(resolver_.address(update->powers)).second;
    return advances ? Powers::advance : Powers::keep;
  }

  ExchangeCall exchange_call(const program::Exchange& payload) {
    ExchangeCall result;
    for (const program::Transfer& transfer : payload.transfers) {
      const bool sends = transfer.direction == program::Direction::send;
      const std::int32_t sender_offset = sends ? transfer.offset : -transfer.offset;
      const std::uint64_t number = messages_[{transfer.axis, sender_offset, transfer.direction}]++;
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
  /// The number of messages so far, by axis, offset of the sender and direction. Messages of a link
  /// are numbered in program order, so both of its ranks number them alike.
  std::map<std::tuple<mesh::Axis, std::int32_t, program::Direction>, std::uint64_t> messages_;
  std::set<const std::byte*> advanced_;  ///< Adam powers advanced so far
};

/// Returns the index of the GEMM in which a rank gets stuck: the first GEMM in the second half of
/// the section, or the last GEMM if that half has none.
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

Call prepare_local(const Resolver& resolver, const program::Payload& op, Powers powers) {
  return std::visit(LocalOp{resolver, powers}, op);
}

PreparedSection prepare(const Resolver& resolver, const program::Program& section,
                        const Communicators& communicators, const PrepareOptions& options) {
  const bool folds = options.folding == Folding::folded;
  PreparedSection result;
  SectionPreparer preparer{resolver, communicators, options, result.reductions};
  OpSlower slower{options.faults, resolver.mesh(), resolver.rank()};
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
    const auto slowing =
        options.faults.any() ? slower.slowing_of(op, i, lane) : std::optional<Slowing>{};
    if (slowing) {
      if (slowing->kind == SlowedKind::delay) {
        call = without_product(gemm_call(resolver, std::get<program::Gemm>(op.payload)));
      }
      call = slowed(std::move(call), *slowing);
    }
    if (i == stuck_at) {
      call = stuck(std::move(call), options.faults.stuck, options.faults.stuck_rank);
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
