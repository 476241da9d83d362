// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/prepare.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "executor/op_requirements.hpp"
#include "program/operands.hpp"

namespace isoscale::executor::cuda {
namespace {

/// Calls visit(op, its number) for every op of a program, setup first.
template <class Visit>
void for_each_numbered_op(const program::RankProgram& program, const Visit& visit) {
  for (const program::Program* section : program.sections()) {
    for (std::uint32_t i = 0; i < section->ops.size(); ++i) visit(section->ops[i], i);
  }
}

Scratch take_scratch(const Resolver& resolver, const program::RankProgram& program,
                     const GemmChoices& choices) {
  std::array<std::uint64_t, program::max_streams> workspace{};
  std::uint64_t measured = 0;
  std::vector<std::uint32_t> indices;
  for_each_numbered_op(program, [&](const program::Op& op, std::uint32_t /*index*/) {
    if (const auto* gemm = std::get_if<program::Gemm>(&op.payload)) {
      const auto need =
          static_cast<std::uint64_t>(choices.of(gemm_problem(resolver, *gemm)).workspace);
      workspace[op.stream] = std::max(workspace[op.stream], need);
    } else if (const auto* fill = std::get_if<program::Fill>(&op.payload)) {
      const std::uint64_t need = host_fill_bytes(resolver, *fill).value();
      workspace[op.stream] = std::max(workspace[op.stream], need);
    } else if (const auto* cast = std::get_if<program::Cast>(&op.payload)) {
      measured += cast->scaling == program::CastScale::amax ? 1 : 0;
    } else if (const auto* rows = std::get_if<program::Rows>(&op.payload)) {
      indices.insert(indices.end(), rows->from.begin(), rows->from.end());
    }
  });
  constexpr std::uint64_t barrier_bytes = 256;
  Scratch scratch;
  for (const std::uint64_t bytes : workspace) {
    scratch.workspaces.push_back(allocate_device(units::Bytes{bytes}));
    scratch.workspace_bytes.emplace_back(bytes);
    scratch.bytes += units::Bytes{bytes};
  }
  scratch.largest = allocate_device(units::Bytes{measured * sizeof(unsigned int)});
  scratch.barrier = allocate_device(units::Bytes{barrier_bytes});
  scratch.indices = upload(indices);
  scratch.bytes += units::Bytes{indices.size() * sizeof(std::uint32_t)};
  scratch.bytes += units::Bytes{measured * sizeof(unsigned int) + barrier_bytes};
  return scratch;
}

class Preparer {
 public:
  Preparer(const Resolver& resolver, const Communicators& communicators, const Puts& puts,
           const GemmChoices& choices, const Scratch& scratch)
      : resolver_(resolver),
        communicators_(communicators),
        puts_(puts),
        choices_(choices),
        scratch_(scratch) {}

  PreparedSection section(const program::Program& section) {
    advanced_.clear();
    PreparedSection result;
    std::set<program::StreamId> used;
    std::array<std::vector<std::uint32_t>, program::max_streams> of_stream;  // ops so far
    for (std::uint32_t i = 0; i < section.ops.size(); ++i) {
      const program::Op& op = section.ops[i];
      used.insert(op.stream);
      of_stream[op.stream].push_back(i);
      PreparedOp prepared{.call = naming(op, i, [&] { return call(op); }),
                          .stream = op.stream,
                          .done = op.awaited ? result.event_count++ : no_event,
                          .wait_begin = static_cast<std::uint32_t>(result.waits.size()),
                          .wait_count = op.wait_count};
      for (const program::Wait& wait : section.waits_of(op)) {
        result.waits.push_back(result.ops[of_stream[wait.stream].at(wait.count - 1)].done);
      }
      if (std::holds_alternative<program::Advise>(op.payload) || touches_pageable(op)) {
        result.can_be_captured = false;
      }
      result.ops.push_back(std::move(prepared));
    }
    result.streams.assign(used.begin(), used.end());
    return result;
  }

  std::vector<std::unique_ptr<GemmPlan>> take_plans() {
    std::vector<std::unique_ptr<GemmPlan>> plans;
    for (auto& [shape, plan] : plans_) plans.push_back(std::move(plan));
    return plans;
  }
  [[nodiscard]] std::vector<GemmChoice> choices_in_use() const {
    std::vector<GemmChoice> choices;
    for (const auto& [shape, choice] : in_use_) {
      choices.push_back(*choice);
      choices.back().arithmetic = arithmetic_of(algorithm_of(choice->algorithm));
    }
    return choices;
  }

 private:
  /// True if the op uses pageable memory. A graph cannot capture such an op, since CUDA may copy a
  /// part of the memory while the copy is issued.
  [[nodiscard]] bool touches_pageable(const program::Op& op) const {
    bool found = false;
    program::for_each_slice(op.payload, [&](const program::Slice& slice, program::Mode) {
      found = found || resolver_.space(slice) == program::Space::pageable;
    });
    return found;
  }

  Call call(const program::Op& op) {
    if (const auto* const gemm = std::get_if<program::Gemm>(&op.payload)) {
      return gemm_call(op, *gemm);
    }
    if (const auto* const collective = std::get_if<program::Collective>(&op.payload)) {
      return collective_call(resolver_, *collective,
                             communicators_.collective(collective->axes, op.stream),
                             scratch_.barrier.get());
    }
    if (const auto* const exchange = std::get_if<program::Exchange>(&op.payload)) {
      if (exchange->transport == program::Transport::symmetric) return puts_.of(*exchange);
      return exchange_call(resolver_, *exchange, communicators_);
    }
    LocalArguments further{.staging = scratch_.workspaces[op.stream].get()};
    if (const auto* const cast = std::get_if<program::Cast>(&op.payload);
        cast != nullptr && cast->scaling == program::CastScale::amax) {
      further.largest = static_cast<unsigned*>(scratch_.largest.get()) + measured_++;
    } else if (const auto* const rows = std::get_if<program::Rows>(&op.payload)) {
      further.from = static_cast<const std::uint32_t*>(scratch_.indices.get()) +
                     std::exchange(indexed_, indexed_ + rows->from.size());
    } else if (const auto* const update = std::get_if<program::Update>(&op.payload)) {
      const bool advances = update->optimizer == program::Optimizer::adam &&
                            advanced_.insert(resolver_.address(update->powers)).second;
      if (advances) further.powers = Powers::advance;
    }
    return prepare_local(resolver_, op.payload, further);
  }

  GemmCall gemm_call(const program::Op& op, const program::Gemm& gemm) {
    const GemmProblem problem = gemm_problem(resolver_, gemm);
    const GemmChoice& choice = choices_.of(problem);
    in_use_.emplace(choice.shape, &choice);
    std::unique_ptr<GemmPlan>& plan = plans_[choice.shape];
    const cublasLtMatmulAlgo_t algorithm = algorithm_of(choice.algorithm);
    if (!plan) {
      plan = std::make_unique<GemmPlan>(problem);
      require_algorithm(choices_.handle(), *plan, algorithm, choice.shape);
    }
    return GemmCall{.library = choices_.handle(),
                    .plan = plan.get(),
                    .algorithm = algorithm,
                    .problem = problem,
                    .workspace = scratch_.workspaces[op.stream].get(),
                    .workspace_bytes = scratch_.workspace_bytes[op.stream].value()};
  }

  const Resolver& resolver_;
  const Communicators& communicators_;
  const Puts& puts_;
  const GemmChoices& choices_;
  const Scratch& scratch_;
  std::map<std::string, std::unique_ptr<GemmPlan>> plans_;  // by shape
  std::map<std::string, const GemmChoice*> in_use_;
  std::set<const std::byte*> advanced_;  // powers that an earlier update of the section advances
  std::size_t measured_ = 0;             // number of casts so far that find a largest value
  std::size_t indexed_ = 0;              // indices of the Rows ops so far
};

}  // namespace

void Scratch::abandon() noexcept {
  for (DeviceMemory& workspace : workspaces) static_cast<void>(workspace.release());
  abandon_all(largest, barrier, indices);
}

std::vector<GemmProblem> gemm_problems(const Resolver& resolver,
                                       const program::RankProgram& program) {
  std::vector<GemmProblem> problems;
  for_each_numbered_op(program, [&](const program::Op& op, std::uint32_t index) {
    if (const auto* gemm = std::get_if<program::Gemm>(&op.payload)) {
      problems.push_back(naming(op, index, [&] { return gemm_problem(resolver, *gemm); }));
    }
  });
  return problems;
}

PreparedProgram prepare(const Resolver& resolver, const program::RankProgram& program,
                        const Communicators& communicators, const Puts& puts,
                        const GemmChoices& choices) {
  PreparedProgram result;
  result.scratch = take_scratch(resolver, program, choices);
  Preparer preparer{resolver, communicators, puts, choices, result.scratch};
  for (const program::Program* section : program.sections()) {
    result.sections.push_back(preparer.section(*section));
  }
  result.plans = preparer.take_plans();
  result.choices = preparer.choices_in_use();
  return result;
}

namespace {

/// Collects the first calls from the calls of a program; see FirstCalls.
class FirstCallFinder {
 public:
  void add(const CollectiveCall& call) {
    const bool is_uneven = !call.send_counts.empty();
    const auto [found, is_new] = collectives_.try_emplace(
        std::tuple{call.communicator, call.kind, call.type, call.operation, call.root, is_uneven},
        result_.collectives.size());
    if (is_new) {
      result_.collectives.push_back(call);
    } else if (!is_uneven && call.data.count > result_.collectives[found->second].data.count) {
      // The sizes of uneven calls are not compared: each rank knows only its own, so ranks would
      // choose different calls.
      result_.collectives[found->second] = call;
    }
  }

  void add(const ExchangeCall& call) {
    for (const Message& message : call.messages) {
      if (message.count == 0) continue;
      Message& largest =
          messages_[{message.communicator, message.peer, message.direction, message.type}];
      if (message.count > largest.count) largest = message;
    }
  }

  [[nodiscard]] FirstCalls take() {
    for (const auto& [key, largest] : messages_) {
      result_.exchanges[largest.communicator].messages.push_back(largest);
    }
    return std::move(result_);
  }

 private:
  FirstCalls result_;
  std::map<std::tuple<ncclComm_t, program::CollectiveKind, ncclDataType_t, ncclRedOp_t, int, bool>,
           std::size_t>
      collectives_;  // number in result_
  std::map<std::tuple<ncclComm_t, int, program::Direction, ncclDataType_t>, Message> messages_;
};

}  // namespace

FirstCalls first_calls(const PreparedProgram& program) {
  FirstCallFinder finder;
  for (const PreparedSection& section : program.sections) {
    for (const PreparedOp& op : section.ops) {
      if (const auto* const collective = std::get_if<CollectiveCall>(&op.call)) {
        finder.add(*collective);
      } else if (const auto* const exchange = std::get_if<ExchangeCall>(&op.call)) {
        finder.add(*exchange);
      }
    }
  }
  return finder.take();
}

}  // namespace isoscale::executor::cuda
