// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "base/log.hpp"
#include "executor/cuda/check.hpp"
#include "executor/cuda/collective_choice.hpp"
#include "executor/cuda/cuda.hpp"
#include "executor/cuda/device.hpp"
#include "executor/cuda/session.hpp"
#include "executor/cuda/symmetric.hpp"
#include "executor/transports.hpp"
#include "machine/facts.hpp"
#include "machine/gpu_facts.hpp"
#include "program/outline.hpp"

namespace isoscale::executor {
namespace {

using cuda::check;
using cuda::choose_marks;
using cuda::chooses;
using cuda::ChosenGpu;
using cuda::CollectiveChoice;
using cuda::Communicators;
using cuda::CudaSession;
using cuda::gemm_problems;
using cuda::GemmChoices;
using cuda::GemmProblem;
using cuda::gives_advice;
using cuda::Memory;
using cuda::moves_pages;
using cuda::PreparedProgram;
using cuda::PreparedSection;
using cuda::Puts;
using cuda::Registrations;
using cuda::SessionParts;
using cuda::StreamPlayer;
using cuda::take_gpu;
using cuda::Versions;
using cuda::versions;

std::string version_text(int encoded) {  // 13000 = 13.0
  return fmt::format("{}.{}", encoded / 1000, encoded % 1000 / 10);
}
std::string nccl_text(int encoded) {  // 22809 = 2.28.9
  return fmt::format("{}.{}.{}", encoded / 10000, encoded % 10000 / 100, encoded % 100);
}
std::string cublas_text(std::size_t encoded) {  // 130001 = 13.0.1
  return fmt::format("{}.{}.{}", encoded / 10000, encoded % 10000 / 100, encoded % 100);
}

/// Runs `work`; when it throws on a rank, all throw: Unsupported when nothing else was thrown, or
/// Error.
template <class Error = base::AgreedError, class Work>
void agreed(const comm::Communicator& point, const Work& work) {
  std::string problem;
  bool fails = false;
  try {
    work();
  } catch (const Unsupported& error) {
    problem = error.what();
  } catch (const std::exception& error) {
    problem = error.what();
    fails = true;
  }
  if (const comm::Vote vote = comm::all_ok(point, problem); !vote.ok) {
    if (point.all_max(fails ? 1.0 : 0.0) == 0) throw Unsupported(vote.why);
    throw Error(vote.why);
  }
}

/// Runs `work`; what NCCL refuses when it was told what to use is nothing that has failed.
template <class Work>
void as_chosen(const SessionOptions& options, const Work& work) {
  try {
    work();
  } catch (const cuda::NcclRefusal& refusal) {
    if (!chooses(options)) throw;
    throw Unsupported(fmt::format(
        "with algorithm {}, protocol {}: {}",
        options.collective_algorithm.empty() ? "of NCCL's choice" : options.collective_algorithm,
        options.collective_protocol.empty() ? "of NCCL's choice" : options.collective_protocol,
        refusal.what()));
  }
}

Description description_of(const ChosenGpu& chosen) {
  const Versions found = versions();
  const machine::VisibleGpu& gpu = chosen.gpu;
  Description description;
  description.name = "cuda";
  description.detail =
      fmt::format("{}, CUDA {}, cuBLASLt {}, NCCL {}", gpu.name, version_text(found.runtime),
                  cublas_text(cublasLtGetVersion()), nccl_text(found.nccl));
  constexpr int ten = 10;
  description.compute_capability = ten * gpu.major + gpu.minor;
  description.precisions = machine::precisions_of(gpu.major, gpu.minor);
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total));
  description.memory_free = units::Bytes{free};
  description.memory_pool = chosen.is_shared ? MemoryPool::node : MemoryPool::rank;
  description.cores = static_cast<int>(machine::machine_facts().bound_core_ids.size());
  description.shared_device = chosen.is_shared;
  description.symmetric_problem = cuda::symmetric_problem(found.nccl, chosen);

  const machine::NvmlLibrary nvml = machine::NvmlLibrary::open();
  if (const auto facts = machine::gpu_facts(nvml, gpu.uuid)) {
    description.facts_text = machine::gpu_facts_text(*facts);
    description.facts_number = machine::gpu_facts_number(*facts);
  }
  // What CUDA itself says holds with or without NVML.
  description.facts_text["gpu_name"] = gpu.name;
  description.facts_text["gpu_uuid"] = gpu.uuid;
  description.facts_text["gpu_pci"] = gpu.pci_bus_id;
  description.facts_text["cuda_runtime"] = version_text(found.runtime);
  description.facts_text["cublas"] = cublas_text(cublasLtGetVersion());
  description.facts_text["nccl"] = nccl_text(found.nccl);
  description.facts_number["gpu_memory"] = static_cast<double>(gpu.memory.value());
  int cache = 0;
  check(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, gpu.index));
  description.facts_number["gpu_l2_cache"] = cache;
  return description;
}

/// Of the arenas. The symmetric one is as large as that of the rank that needs most, and has room
/// for the channels of puts.
units::Bytes storage_of(const program::RankProgram& program, const Memory& memory) {
  constexpr auto symmetric = static_cast<std::size_t>(program::Space::symmetric);
  units::Bytes bytes{memory.arenas.symmetric().bytes};
  for (std::size_t space = 0; space < program::space_count; ++space) {
    if (space != symmetric) bytes += units::Bytes{program.arena_bytes[space]};
  }
  return bytes;
}

/// Chooses the ops that say when they begin; false when there is none.
bool mark(PreparedProgram& prepared, const program::RankProgram& program, const mesh::Shape& mesh,
          std::optional<units::Seconds> cost) {
  if (!cost) return false;
  bool any = false;
  for (std::size_t i = 0; i < prepared.sections.size(); ++i) {
    PreparedSection& section = prepared.sections[i];
    const auto which = static_cast<program::Section>(i);
    const std::vector<bool> marked = choose_marks(program::outline(program, which, mesh), *cost);
    section.has_marks = !marked.empty();
    any = any || section.has_marks;
    for (std::size_t op = 0; op < marked.size(); ++op) section.ops[op].is_marked = marked[op];
  }
  return any;
}

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(const CudaOptions& options, ChosenGpu chosen)
      : options_(options),
        chosen_(std::move(chosen)),
        description_(description_of(chosen_)),
        choices_(fmt::format("{}, cuBLASLt {}", chosen_.gpu.name, cublasLtGetVersion()),
                 options.known_algorithms) {}

  [[nodiscard]] const Description& describe() const override { return description_; }

  using Executor::prepare;
  [[nodiscard]] std::unique_ptr<Session> prepare(const program::ProgramSet& set,
                                                 const comm::Communicator& point,
                                                 const SessionOptions& options) override;

 private:
  void say_what_was_chosen_anew(const comm::Communicator& point);

  CudaOptions options_;
  ChosenGpu chosen_;
  Description description_;
  GemmChoices choices_;
  cuda::KeptCommunicators kept_;  // outlived by no session
  int said_ = 0;
};

std::unique_ptr<Session> CudaExecutor::prepare(const program::ProgramSet& set,
                                               const comm::Communicator& point,
                                               const SessionOptions& options) {
  agreed(point, [&] {
    require_no_faults(options, "cuda");  // faults are of single ranks
    require_transports(set, description_);
  });
  const program::RankProgram& program = set.of(point.rank());
  // Declared in this order: memory must outlive the communicators that know it.
  std::unique_ptr<Memory> memory;
  std::unique_ptr<Communicators> communicators;
  Registrations registrations;
  std::optional<CollectiveChoice> choice;  // until the first calls are made: NCCL looks again then
  agreed(point, [&] { choice.emplace(options, set); });
  // Not where NCCL is told what to use as it makes them, nor where a rank that has nothing to do
  // would hold memory of a GPU that others measure on.
  const bool keeps = !chooses(options) && !chosen_.is_shared;
  const units::Nanoseconds before = comm::now();
  agreed(point, [&] {
    as_chosen(options, [&] {
      communicators =
          keeps ? kept_.take(set, point, options_.communicator_timeout)
                : std::make_unique<Communicators>(set, point, options_.communicator_timeout);
    });
  });
  const units::Seconds creation = units::to_seconds(comm::now() - before);

  std::vector<GemmProblem> problems;
  agreed(point, [&] {
    if (gives_advice(program) && !moves_pages()) {
      throw Unsupported("managed memory does not move between this GPU and the host on its own");
    }
    on_numa_node(options, [&] {
      memory = std::make_unique<Memory>(set, point.rank(), options.registration,
                                        Puts::room(set, *communicators));
    });
    problems = gemm_problems(memory->resolver, program);
  });
  Puts puts;
  agreed(point, [&] { cuda::require_windows(set, *communicators); });
  agreed(point, [&] {
    registrations = Registrations{set, *communicators, memory->arenas, options.registration};
  });
  agreed(point, [&] {
    cuda::require_symmetric(set, *communicators);
    puts = Puts{set, *communicators, registrations, *memory};
  });
  cuda::DeviceBarrier barrier;
  agreed(point, [&] { barrier = cuda::DeviceBarrier{set, *communicators}; });
  choices_.decide(problems, point);
  say_what_was_chosen_anew(point);

  SessionFacts facts;
  // Agreed upon too: where one rank cannot go on, all drop their communicators in the same way.
  PreparedProgram prepared;
  agreed(point, [&] {
    prepared = cuda::prepare(memory->resolver, program, *communicators, puts, choices_);
  });
  // All memory is zero still, and stays so: sums and extremes of zeros are zeros.
  agreed(point, [&] {
    as_chosen(options, [&] {
      try {
        communicators->connect(point, cuda::first_calls(prepared));
      } catch (const cuda::NcclRefusal&) {
        throw;
      } catch (const base::Error&) {
        // Peers may wait inside of NCCL for what this rank will not do: its abort tells them.
        registrations.abandon();
        communicators->abort();
        throw;
      }
    });
  });
  choice.reset();
  if (options_.nvtx == config::Nvtx::on) {
    const auto sections = program.sections();
    for (std::size_t i = 0; i < prepared.sections.size(); ++i) {
      prepared.sections[i].ranges = cuda::ranges_of(*sections[i]);
    }
  }
  std::optional<StreamPlayer> player;
  agreed(point, [&] {
    const bool has_marks = mark(prepared, program, set.mesh, options_.mark_cost);
    player.emplace(program, has_marks ? StreamPlayer::Marking::on : StreamPlayer::Marking::off);
  });
  facts.memory = storage_of(program, *memory);
  facts.memory += prepared.scratch.bytes + puts.bytes();
  facts.host_memory = units::Bytes{program.host_bytes()};
  facts.graph = options_.graph == config::Graph::on;
  facts.communicator_creation = creation;
  facts.gemm_choices = prepared.choices;
  facts.communicators = communicators->facts();
  return std::make_unique<CudaSession>(SessionParts{.memory = std::move(memory),
                                                    .communicators = std::move(communicators),
                                                    .keeper = keeps ? &kept_ : nullptr,
                                                    .registrations = std::move(registrations),
                                                    .puts = std::move(puts),
                                                    .barrier = std::move(barrier),
                                                    .program = std::move(prepared),
                                                    .player = std::move(*player),
                                                    .graph = options_.graph,
                                                    .nvtx = options_.nvtx,
                                                    .facts = std::move(facts)});
}

void CudaExecutor::say_what_was_chosen_anew(const comm::Communicator& point) {
  const int now = choices_.chosen_anew();
  if (now > said_ && point.rank() == 0) {
    base::warn(fmt::format(
        "{} GEMM shapes are not in the file that --gemm-algorithms names: their algorithms were "
        "chosen by timing",
        now - said_));
  }
  said_ = now;
}

}  // namespace

std::unique_ptr<Executor> make_cuda_executor(const CudaOptions& options,
                                             const comm::Communicator& world) {
  const ChosenGpu chosen = take_gpu(world, options.gpu_bind, options.share);
  std::unique_ptr<Executor> executor;
  agreed<base::UsageError>(world,
                           [&] { executor = std::make_unique<CudaExecutor>(options, chosen); });
  return executor;
}

}  // namespace isoscale::executor
