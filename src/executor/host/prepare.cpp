// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/prepare.hpp"

#include <set>
#include <tuple>
#include <utility>
#include <variant>

#include "executor/host/fault_injection.hpp"
#include "executor/op_arguments.hpp"

namespace isoscale::executor::host {
namespace {

/// Prepares the ops of one section. The functions that prepare one op throw base::Error if the host
/// cannot execute it.
class SectionPreparer {
 public:
  SectionPreparer(const Resolver& resolver, const Communicators& communicators,
                  const PrepareOptions& options, OwnReductions& reductions)
      : resolver_(resolver),
        communicators_(communicators),
        options_(options),
        reductions_(reductions) {}

  Call prepare(const program::Op& op) {
    return std::visit([&](const auto& payload) { return call(payload, op.stream); }, op.payload);
  }

 private:
  Call call(const program::Gemm& op, program::StreamId /*stream*/) const {
    return gemm_call(resolver_, op);
  }
  Call call(const program::Copy& op, program::StreamId /*stream*/) const {
    return running(strided_copy(resolver_, op));
  }
  /// Advise says where a slice of managed memory should lie. The host has only one kind of memory,
  /// so this only checks that the slice lies within its buffer.
  Call call(const program::Advise& op, program::StreamId /*stream*/) const {
    static_cast<void>(resolver_.address(op.slice));
    return [](Player& /*player*/) {};
  }
  Call call(const program::Cast& op, program::StreamId /*stream*/) const {
    if (program::exists(op.transposed) || op.scaling != program::CastScale::fixed) {
      throw base::Error("a cast with a transposed copy or a measured scale: the host has neither");
    }
    return running(arguments(op));
  }
  Call call(const program::Update& op, program::StreamId /*stream*/) {
    const bool advances = op.optimizer == program::Optimizer::adam &&
                          advanced_.insert(resolver_.address(op.powers)).second;
    Arguments<program::Update> call = arguments(op);
    if (advances) call.powers = Powers::advance;
    return running(call);
  }
  Call call(const program::Collective& op, program::StreamId stream) const {
    return [call = collective_call(resolver_, op, stream, communicators_,
                                   options_.elements_per_call, options_.staging[stream],
                                   reductions_)](Player& player) { host::run(call, player); };
  }
  Call call(const program::Exchange& op, program::StreamId /*stream*/) {
    ExchangeCall result;
    for (const program::Transfer& transfer : op.transfers) {
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
    return [call = std::move(result)](Player& player) { host::run(call, player); };
  }
  template <class Op>
  Call call(const Op& op, program::StreamId /*stream*/) const {
    return running(arguments(op));
  }

  /// Looks up the operands of an op.
  template <class Op>
  [[nodiscard]] Arguments<Op> arguments(const Op& op) const {
    return arguments_of(resolver_, op, [&](const TypedOperand& operand, const program::Slice&) {
      require_computed(program::kind_of(op), operand);
    });
  }
  template <class Looked>
  static Call running(Looked call) {
    return [call = std::move(call)](Player& /*player*/) { host::run(call); };
  }

  const Resolver& resolver_;
  const Communicators& communicators_;
  const PrepareOptions& options_;
  OwnReductions& reductions_;
  /// The number of messages so far. The key is the axis, the offset from sender to receiver along
  /// this axis, and the direction. Sender and receiver number the messages of a link in the same
  /// order, that of their programs, so both give a message the same number.
  std::map<std::tuple<mesh::Axis, std::int32_t, program::Direction>, std::uint64_t> messages_;
  /// Addresses of the Adam powers (beta1^t, beta2^t) that an earlier op of the section advances.
  std::set<const std::byte*> advanced_;
};

/// Returns the index of the GEMM at which the injected fault `stuck` stops a rank: the first GEMM
/// in the second half of the section, or the last GEMM of the section if its second half has
/// none. Absent if the section has no GEMM.
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
  const bool folds = options.folding == program::Folding::folded;
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
