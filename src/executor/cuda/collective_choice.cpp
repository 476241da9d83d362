// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/collective_choice.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "executor/cuda/nccl_versions.hpp"
#include "workloads/collective_algorithms.hpp"

namespace isoscale::executor::cuda {
namespace {

void require_protocol(const SessionOptions& options,
                      const workloads::CollectiveAlgorithm* algorithm) {
  const std::string& name = options.collective_protocol;
  if (name.empty()) return;
  if (workloads::find_collective_protocol(name) == nullptr) {
    throw Unsupported(fmt::format("NCCL has no protocol '{}'", name));
  }
  if (algorithm != nullptr && !workloads::has_protocol(*algorithm, name)) {
    throw Unsupported(fmt::format("NCCL has no {} with protocol {}", algorithm->name, name));
  }
}

/// Barriers only order the ranks: how they do it does not matter.
void require_collectives(const program::ProgramSet& set,
                         const workloads::CollectiveAlgorithm& algorithm) {
  for (const program::RankProgram& program : set.programs) {
    for (const program::Program* section : program.sections()) {
      for (const program::Op& op : section->ops) {
        const auto* const collective = std::get_if<program::Collective>(&op.payload);
        if (collective == nullptr || collective->kind == program::CollectiveKind::barrier) continue;
        if (algorithm.does(collective->kind)) continue;
        throw Unsupported(fmt::format("NCCL has no {} by {}",
                                      program::name(program::kind_of(op.payload)), algorithm.name));
      }
    }
  }
}

}  // namespace

bool chooses(const SessionOptions& options) {
  return !options.collective_algorithm.empty() || !options.collective_protocol.empty();
}

CollectiveChoice::CollectiveChoice(const SessionOptions& options,
                                   const program::ProgramSet& programs) {
  const workloads::CollectiveAlgorithm* algorithm = nullptr;
  if (!options.collective_algorithm.empty()) {
    algorithm = workloads::find_collective_algorithm(options.collective_algorithm);
    if (algorithm == nullptr) {
      throw Unsupported(fmt::format("NCCL has no algorithm '{}'", options.collective_algorithm));
    }
    require_collectives(programs, *algorithm);
  }
  require_protocol(options, algorithm);
  if (algorithm != nullptr) set("NCCL_ALGO", algorithm_setting(*algorithm));
  if (const auto* protocol = workloads::find_collective_protocol(options.collective_protocol)) {
    set("NCCL_PROTO", std::string{protocol->nccl_name});
  }
}

CollectiveChoice::~CollectiveChoice() {
  for (const auto& [variable, value] : before_) {
    if (value) {
      ::setenv(variable, value->c_str(), 1);
    } else {
      ::unsetenv(variable);
    }
  }
}

void CollectiveChoice::set(const char* variable, const std::string& value) {
  const char* const before = std::getenv(variable);
  before_.emplace_back(variable,
                       before == nullptr ? std::nullopt : std::optional<std::string>{before});
  ::setenv(variable, value.c_str(), 1);
}

}  // namespace isoscale::executor::cuda
