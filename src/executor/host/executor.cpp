// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <span>

#include "base/error.hpp"
#include "base/text.hpp"
#include "executor/host/blas.hpp"
#include "executor/host/cores.hpp"
#include "executor/host/host.hpp"
#include "executor/host/memory.hpp"
#include "executor/host/session.hpp"
#include "executor/host/staging.hpp"
#include "executor/transports.hpp"
#include "machine/kernel_files.hpp"
#include "units/text.hpp"

namespace isoscale::executor {
namespace {

using host::Communicators;
using host::Folding;
using host::Waiting;

std::size_t stream_count(const program::RankProgram& program) {
  std::set<program::StreamId> used;
  for (const program::Program* section : program.sections()) {
    for (const program::Op& op : section->ops) used.insert(op.stream);
  }
  return used.size();
}

units::Bytes storage_need(const program::RankProgram& program,
                          std::span<const units::Bytes> staging) {
  const auto& arenas = program.arena_bytes;
  return std::accumulate(
      staging.begin(), staging.end(),
      units::Bytes{std::accumulate(arenas.begin(), arenas.end(), std::uint64_t{0})});
}

/// Collective: all ranks of a node refuse together, before any of them has touched its memory.
void require_memory(units::Bytes need, const comm::Communicator& point) {
  const comm::Communicator node = point.split_node();
  const auto available = machine::memory_available(machine::read_file);
  constexpr double unknown = -1;
  const double free = node.all_min(available ? static_cast<double>(available->value()) : unknown);
  const double total = node.all_sum(static_cast<double>(need.value()));
  if (free == unknown || total <= free) return;
  const auto text = [](double bytes) {
    return units::format(units::Bytes{static_cast<std::uint64_t>(bytes)});
  };
  throw base::Error(fmt::format(
      "not enough memory: this rank needs {}, the {} ranks of its node {} together, and {} are "
      "free there: use a smaller model or batch, or fewer ranks per node",
      units::format(need), node.size(), text(total), text(free)));
}

class HostExecutor final : public Executor {
 public:
  explicit HostExecutor(const HostOptions& options) : options_(options) {
    if (options.blas_threads < 1) throw base::UsageError("BLAS needs at least 1 thread");
    if (options.elements_per_call < 1 || options.elements_per_call > max_elements_per_call) {
      throw base::UsageError(fmt::format("an MPI call takes 1 to {} elements, not {}",
                                         max_elements_per_call, options.elements_per_call));
    }
    blas_threads_ = host::set_blas_threads(options.blas_threads);
    description_.name = "host";
    description_.detail = fmt::format(
        "{}, {}", host::blas_name(),
        blas_threads_ == 0 ? "unknown number of threads" : base::counted(blas_threads_, "thread"));
    const std::string warning = host::blas_warning();
    if (!warning.empty()) description_.facts_text["blas_warning"] = warning;
    using workloads::Precision;
    description_.precisions = {Precision::f64, Precision::f32};
    if (options.narrow == NarrowTypes::emulated) {
      description_.precisions = {Precision::f64, Precision::f32,  Precision::tf32,
                                 Precision::f16, Precision::bf16, Precision::fp8};
    }
    description_.memory_free = machine::memory_available(machine::read_file);
    description_.memory_pool = MemoryPool::node;
    description_.cores = host::cores_of_this_rank(options.ranks_on_node);
    description_.symmetric_problem =
        "transport=symmetric needs NCCL's symmetric windows: --device cuda";
  }

  [[nodiscard]] const Description& describe() const override { return description_; }

  using Executor::prepare;
  [[nodiscard]] std::unique_ptr<Session> prepare(const program::ProgramSet& set,
                                                 const comm::Communicator& point,
                                                 const SessionOptions& options) override;

 private:
  [[nodiscard]] std::string reason_to_fold(std::size_t streams) const;
  [[nodiscard]] Waiting waiting_of_all(std::size_t threads, const program::Faults& faults,
                                       const comm::Communicator& point) const;

  HostOptions options_;
  int blas_threads_ = 0;
  Description description_;
};

std::unique_ptr<Session> HostExecutor::prepare(const program::ProgramSet& set,
                                               const comm::Communicator& point,
                                               const SessionOptions& options) {
  require_usual_communication(options, "host");
  require_transports(set, description_);
  // What is collective comes first: a rank that throws then leaves nobody waiting.
  const units::Nanoseconds before = comm::now();
  Communicators communicators{communication_needs(set), set.mesh, point};
  const units::Seconds creation = units::to_seconds(comm::now() - before);
  const program::RankProgram& program = set.of(point.rank());
  const std::size_t streams = stream_count(program);
  const std::string reason = reason_to_fold(streams);
  const bool folds = streams <= 1 || !reason.empty();
  const Waiting waiting = waiting_of_all(folds ? 1 : streams, options.faults, point);
  const auto staging = host::staging_bytes(program, set.mesh, options_.elements_per_call);
  const units::Bytes need = storage_need(program, staging);
  require_memory(need, point);

  host::SessionParts parts{.communicators = std::move(communicators),
                           .arenas = {},
                           .staging = {},
                           .facts = {.folded = !reason.empty(),
                                     .folded_reason = reason,
                                     .blas_threads = blas_threads_,
                                     .memory = need,
                                     .host_memory = units::Bytes{program.host_bytes()},
                                     .communicator_creation = creation},
                           .options = {.folding = folds ? Folding::folded : Folding::as_streamed,
                                       .elements_per_call = options_.elements_per_call,
                                       .narrow = options_.narrow,
                                       .faults = options.faults},
                           .waiting = waiting};
  on_numa_node(options, [&] {
    for (std::size_t space = 0; space < program::space_count; ++space) {
      parts.arenas[space] = host::allocate(units::Bytes{program.arena_bytes[space]});
    }
    for (std::size_t stream = 0; stream < staging.size(); ++stream) {
      parts.staging[stream] = host::allocate(staging[stream]);
      const host::Mapping& memory = parts.staging[stream].get();
      parts.options.staging[stream] = {memory.address, memory.bytes};
    }
  });
  return std::make_unique<host::HostSession>(set, point.rank(), std::move(parts));
}

/// Collective. A thread that has a core of its own waits best inside MPI. So does the only thread
/// of a rank: MPI itself gives the core away when it knows that ranks share it. But a collective
/// that one member begins and another blocks in is two different ones to MPI: all ranks wait alike.
/// Delays are for ranks that share cores without its being known; they leave them to each other.
Waiting HostExecutor::waiting_of_all(std::size_t threads, const program::Faults& faults,
                                     const comm::Communicator& point) const {
  const bool has_cores = threads <= 1 || description_.cores >= static_cast<int>(threads);
  const Waiting best = faults.gemm_rate != 0 ? Waiting::asleep
                       : has_cores           ? Waiting::blocking
                                             : Waiting::ladder;
  return static_cast<Waiting>(point.all_max(static_cast<int>(best)));
}

/// "" when streams go on threads.
std::string HostExecutor::reason_to_fold(std::size_t streams) const {
  if (streams <= 1) return {};
  if (options_.streams == HostStreams::folded) return "asked for";
  if (options_.thread_level < MPI_THREAD_MULTIPLE) {
    return "MPI does not let several threads communicate";
  }
  constexpr int least_cores = 2;
  if (options_.streams == HostStreams::automatic && description_.cores < least_cores) {
    return "the rank has fewer than two cores";
  }
  return {};
}

}  // namespace

std::unique_ptr<Executor> make_host_executor(const HostOptions& options) {
  return std::make_unique<HostExecutor>(options);
}

}  // namespace isoscale::executor
