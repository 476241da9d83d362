// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/prepare.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "executor/op_requirements.hpp"

namespace isoscale::executor::cuda {
namespace {

/// Returns new device memory with a copy of the words.
DeviceMemory upload(const std::vector<std::uint32_t>& words) {
  const std::size_t bytes = words.size() * sizeof(std::uint32_t);
  DeviceMemory memory = allocate_device(units::Bytes{bytes});
  if (bytes > 0) check(cudaMemcpy(memory.get(), words.data(), bytes, cudaMemcpyDefault));
  return memory;
}

}  // namespace

Scratch take_scratch(const Resolver& resolver, const program::RankProgram& program,
                     const GemmChoices& choices) {
  std::array<std::uint64_t, program::max_streams> workspace{};
  const auto reserve = [&](const program::Op& op, std::uint64_t bytes) {
    workspace[op.stream] = std::max(workspace[op.stream], bytes);
  };
  for_each_op<program::Gemm>(program, [&](const auto& op, const auto& gemm) {
    reserve(op, static_cast<std::uint64_t>(choices.of(gemm_problem(resolver, gemm)).workspace));
  });
  for_each_op<program::Fill>(program, [&](const auto& op, const auto& fill) {
    reserve(op, host_fill_bytes(resolver, fill));
  });
  std::uint64_t measured = 0;
  for_each_op<program::Cast>(program, [&](const auto&, const auto& cast) {
    measured += cast.scaling == program::CastScale::amax ? 1 : 0;
  });
  std::vector<std::uint32_t> indices;
  for_each_op<program::Rows>(program, [&](const auto&, const auto& rows) {
    indices.insert(indices.end(), rows.from.begin(), rows.from.end());
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

void Scratch::abandon() noexcept {
  for (DeviceMemory& workspace : workspaces) static_cast<void>(workspace.release());
  abandon_all(largest, barrier, indices);
}

std::vector<GemmProblem> gemm_problems(const Resolver& resolver,
                                       const program::RankProgram& program) {
  std::vector<GemmProblem> problems;
  for (const program::Program* section : program.sections()) {
    for (std::uint32_t i = 0; i < section->ops.size(); ++i) {
      const program::Op& op = section->ops[i];
      const auto* const gemm = std::get_if<program::Gemm>(&op.payload);
      if (gemm == nullptr) continue;
      problems.push_back(naming(op, i, [&] { return gemm_problem(resolver, *gemm); }));
    }
  }
  return problems;
}

std::uint64_t host_fill_bytes(const Resolver& resolver, const program::Fill& op) {
  const program::Space space = resolver.space(op.dst);
  const bool is_host = space == program::Space::pinned || space == program::Space::pageable;
  return is_host ? op.dst.count * resolver.element_size(op.dst) : 0;
}

std::map<ncclComm_t, FirstCalls> first_calls(const PreparedProgram& program) {
  std::map<ncclComm_t, FirstCalls> result;
  std::map<std::tuple<ncclComm_t, int, program::Direction, ncclDataType_t>, Message> messages;
  for (const PreparedSection& section : program.sections) {
    for (const PreparedOp& op : section.ops) {
      if (const auto* const call = std::get_if<CollectiveCall>(&op.call)) {
        const auto form = [](const CollectiveCall& one) {
          return std::tuple{one.kind, one.type, one.operation, one.root};
        };
        std::vector<CollectiveCall>& known = result[call->communicator].collectives;
        const auto largest = std::ranges::find(known, form(*call), form);
        if (largest == known.end()) {
          known.push_back(*call);
        } else if (call->data.count > largest->data.count) {
          *largest = *call;
        }
      } else if (const auto* const exchange = std::get_if<ExchangeCall>(&op.call)) {
        for (const Message& one : exchange->messages) {
          if (one.count == 0) continue;
          Message& largest = messages[{one.communicator, one.peer, one.direction, one.type}];
          if (one.count > largest.count) largest = one;
        }
      }
    }
  }
  for (const auto& [key, largest] : messages) {
    result[largest.communicator].exchange.messages.push_back(largest);
  }
  return result;
}

}  // namespace isoscale::executor::cuda
