// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.hpp"
#include "base/warn.hpp"
#include "executor/cuda/device.hpp"
#include "executor/cuda/session.hpp"
#include "executor/executor.hpp"
#include "workloads/api/nccl_algorithms_and_protocols.hpp"

namespace isoscale::executor::cuda {
namespace {

/// Returns NCCL's own name for the protocol that the user's options name.
std::string_view protocol_of(const SessionOptions& options,
                             const workloads::CollectiveAlgorithm* algorithm) {
  const std::string& name = options.collective_protocol;
  const auto* const protocol = find_named(workloads::collective_protocols, name);
  if (protocol == nullptr) throw Unsupported(fmt::format("NCCL has no protocol '{}'", name));
  if (algorithm != nullptr && !workloads::has_protocol(*algorithm, name)) {
    throw Unsupported(fmt::format("NCCL has no {} with protocol {}", algorithm->name, name));
  }
  return protocol->nccl_name;
}

/// Throws Unsupported if a program has a collective that the algorithm does not support. Barriers
/// are not checked, since their algorithm does not matter.
void require_collectives(const program::ProgramSet& set,
                         const workloads::CollectiveAlgorithm& algorithm) {
  for (const program::RankProgram& program : set.programs) {
    for_each_op<program::Collective>(program, [&](const auto& op, const auto& collective) {
      const bool is_barrier = collective.kind == program::CollectiveKind::barrier;
      if (is_barrier || algorithm.does(collective.kind)) return;
      throw Unsupported(fmt::format("NCCL has no {} by {}",
                                    program::name(program::kind_of(op.payload)), algorithm.name));
    });
  }
}

/// True if the options choose an algorithm or a protocol for NCCL.
bool chooses(const SessionOptions& options) {
  return !options.collective_algorithm.empty() || !options.collective_protocol.empty();
}

/// Sets, for its lifetime, the environment variables that tell NCCL which algorithm and protocol to
/// use; the destructor restores the user's values. NCCL reads the variables when it makes a
/// communicator and again when the communicator is first used for messages. They belong to the
/// whole process, so no other thread may read or write the environment at the same time.
class CollectiveChoice {
 public:
  /// Throws Unsupported if the options name an unknown algorithm or protocol, or one that NCCL
  /// would silently ignore for some collective of `programs`.
  CollectiveChoice(const SessionOptions& options, const program::ProgramSet& programs) {
    const workloads::CollectiveAlgorithm* algorithm = nullptr;
    if (!options.collective_algorithm.empty()) {
      algorithm = find_named(workloads::collective_algorithms, options.collective_algorithm);
      if (algorithm == nullptr) {
        throw Unsupported(fmt::format("NCCL has no algorithm '{}'", options.collective_algorithm));
      }
      require_collectives(programs, *algorithm);
    }
    std::string_view protocol;
    if (!options.collective_protocol.empty()) protocol = protocol_of(options, algorithm);
    if (algorithm != nullptr) set("NCCL_ALGO", algorithm_setting(*algorithm));
    if (!protocol.empty()) set("NCCL_PROTO", std::string{protocol});
  }
  ~CollectiveChoice() {
    for (const auto& [variable, value] : before_) {
      if (value) {
        ::setenv(variable, value->c_str(), 1);
      } else {
        ::unsetenv(variable);
      }
    }
  }
  CollectiveChoice(const CollectiveChoice&) = delete;
  CollectiveChoice& operator=(const CollectiveChoice&) = delete;

 private:
  void set(const char* variable, const std::string& value) {
    const char* const before = std::getenv(variable);
    before_.emplace_back(variable,
                         before == nullptr ? std::nullopt : std::optional<std::string>{before});
    ::setenv(variable, value.c_str(), 1);
  }

  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

/// Runs `work`. If NCCL rejects it and the options chose an algorithm or protocol, throws
/// Unsupported in place of NcclRefusal, so that the measurement counts as skipped, not as failed.
template <class Work>
void as_chosen(const SessionOptions& options, const Work& work) {
  try {
    work();
  } catch (const NcclRefusal& refusal) {
    if (!chooses(options)) throw;
    throw Unsupported(fmt::format(
        "with algorithm {}, protocol {}: {}",
        options.collective_algorithm.empty() ? "of NCCL's choice" : options.collective_algorithm,
        options.collective_protocol.empty() ? "of NCCL's choice" : options.collective_protocol,
        refusal.what()));
  }
}

/// True if a program gives advice about managed memory, which is possible only if moves_pages().
bool gives_advice(const program::RankProgram& program) {
  bool found = false;
  for_each_op<program::Advise>(program, [&](const auto&, const auto&) { found = true; });
  return found;
}

/// Throws Unsupported if a program reduces fp8 and the GPU is older than sm_90, for which NCCL has
/// no such reductions.
void require_fp8_reductions(const program::ProgramSet& set, const Description& device) {
  constexpr int hopper = 90;
  if (device.compute_capability >= hopper) return;
  for (const program::RankProgram& program : set.programs) {
    for_each_op<program::Collective>(program, [&](const auto&, const auto& collective) {
      if (!reduces(collective.kind)) return;
      const program::DType type = program.buffers[collective.send.buffer].dtype;
      if (type != program::DType::e4m3 && type != program::DType::e5m2) return;
      throw Unsupported(fmt::format(
          "NCCL reduces {} only on GPUs of compute capability 9.0 or newer", program::name(type)));
    });
  }
}

/// Throws Unsupported if a communicator whose ops use symmetric memory cannot be asked for windows.
void require_one_node(const program::ProgramSet& set, const Communicators& communicators) {
  const auto touching = communicators.touching(set, program::Space::symmetric);
  if (std::ranges::all_of(touching, can_ask_for_windows)) return;
  throw Unsupported(
      "NCCL 2.28 makes symmetric windows only within a node, and these ranks are on several");
}

bool moves_pages() {
  int device = 0, value = 0;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&value, cudaDevAttrConcurrentManagedAccess, device));
  return value != 0;
}

/// Collective: allows the capture of a section in a CUDA graph only if all ranks can capture it.
/// NCCL demands that either all or none of the ranks that take part in a call capture it (NCCL user
/// guide, "Using NCCL with CUDA Graphs").
void agree_on_captures(const comm::Communicator& point, PreparedProgram& prepared) {
  std::vector<double> refused;
  for (const PreparedSection& section : prepared.sections) {
    refused.push_back(section.can_be_captured ? 0 : 1);
  }
  point.all_max(refused);
  for (std::size_t i = 0; i < refused.size(); ++i) {
    prepared.sections[i].can_be_captured = refused[i] == 0;
  }
}

/// Chooses, in all sections, the ops at whose start the GPU writes a mark to host memory, which
/// shows where a GPU hangs (gate_and_progress_words.hpp). `cost` is the time of one mark; without
/// it, no op is marked.
void mark(PreparedProgram& prepared, const program::RankProgram& program, const mesh::Shape& mesh,
          std::optional<units::Seconds> cost) {
  if (!cost) return;
  for (std::size_t i = 0; i < prepared.sections.size(); ++i) {
    PreparedSection& section = prepared.sections[i];
    const auto which = static_cast<program::Section>(i);
    const std::vector<bool> marked = choose_marks(program::outline(program, which, mesh), *cost);
    section.has_marks = !marked.empty();
    for (std::size_t op = 0; op < marked.size(); ++op) section.ops[op].is_marked = marked[op];
  }
}

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(const CudaOptions& options, ChosenGpu chosen)
      : options_(options),
        chosen_(std::move(chosen)),
        description_(description_of(chosen_, nvml_)),
        choices_(fmt::format("{}, cuBLASLt {}", chosen_.gpu.name, cublasLtGetVersion()),
                 options.known_algorithms) {}

  [[nodiscard]] const Description& describe() const override { return description_; }

  [[nodiscard]] SessionPtr prepare(const program::ProgramSet& set, const comm::Communicator& point,
                                   const SessionOptions& options) override {
    agreed(point, [&] {
      require_no_faults(options, "cuda");  // faults to inject may be set on some ranks only
      require_transports(set, description_);
      require_fp8_reductions(set, description_);
    });
    const program::RankProgram& program = set.of(point.rank());
    // The order of the following declarations matters: memory must outlive the communicators that
    // use it.
    std::unique_ptr<Memory> memory;
    std::unique_ptr<Communicators> communicators;
    Registrations registrations;
    std::optional<CollectiveChoice> choice;  // sets variables that NCCL reads until the first calls
                                             // are done
    agreed(point, [&] { choice.emplace(options, set); });
    // Communicators are not kept for the next session in three cases: if the options chose an
    // algorithm or protocol, since the communicators would continue to use it; if ranks share GPUs,
    // since an idle rank would hold memory of a GPU on which other ranks measure; and with graphs,
    // since NCCL registers the memory of captured calls with network adapters and, after the graph
    // is gone, undoes this only in later calls or when the communicator closes. The memory would be
    // freed before, and the registration would be found again for other memory at its address.
    const bool keeps =
        !chooses(options) && !chosen_.is_shared && options_.graph == settings::Graph::off;
    const units::Nanoseconds before = comm::now();
    agreed(point, [&] {
      as_chosen(options, [&] {
        communicators =
            keeps ? kept_or_new(std::move(kept_), set, point, options_.communicator_timeout)
                  : std::make_unique<Communicators>(set, point, options_.communicator_timeout);
      });
    });
    const units::Seconds creation = units::to_seconds(comm::now() - before);

    std::vector<GemmProblem> problems;
    agreed(point, [&] {
      require_one_node(set, *communicators);
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
    agreed(point, [&] { require_windows(set, *communicators); });
    agreed(point, [&] {
      registrations = Registrations{set, *communicators, memory->arenas, options.registration};
    });
    agreed(point, [&] {
      require_symmetric(set, *communicators);
      puts = Puts{set, *communicators, registrations, *memory};
    });
    DeviceBarrier barrier;
    agreed(point, [&] { barrier = DeviceBarrier{set, *communicators}; });
    const int timed = choices_.decide(problems, point);
    if (timed > 0 && point.rank() == 0) {
      base::warn(fmt::format(
          "isoscale: warning: {} GEMM shapes are not in the file that --gemm-algorithms names: "
          "their algorithms were chosen by timing",
          timed));
    }

    // If one rank fails here, all must throw, so that all drop their communicators in the same way.
    PreparedProgram prepared;
    agreed(point, [&] {
      prepared = cuda::prepare(memory->resolver, program, *communicators, puts, choices_);
    });
    agree_on_captures(point, prepared);
    // The first calls use the program's buffers before the setup section has filled them. The
    // buffers hold zeros, or what the timing of GEMM algorithms has left in them.
    agreed(point, [&] {
      as_chosen(options, [&] {
        try {
          communicators->connect(point, first_calls(prepared, options));
        } catch (const NcclRefusal&) {
          throw;
        } catch (const base::Error&) {
          // Peers may wait inside NCCL for calls that this rank will not make; aborting ends their
          // wait.
          registrations.abandon();
          communicators->abort();
          throw;
        }
      });
    });
    choice.reset();
    if (options_.nvtx == settings::Nvtx::on) {
      const auto sections = program.sections();
      for (std::size_t i = 0; i < prepared.sections.size(); ++i) {
        prepared.sections[i].ranges = ranges_of(*sections[i]);
      }
    }
    std::optional<StreamPlayer> player;
    agreed(point, [&] {
      mark(prepared, program, set.mesh, options_.mark_cost);
      player.emplace(program, prepared);
    });
    const auto steps = std::span{prepared.sections}.subspan(1);
    SessionFacts facts{.folded_reason = "",
                       .memory = memory->arenas.bytes() + prepared.scratch.bytes + puts.bytes(),
                       .host_memory = units::Bytes{program.host_bytes()},
                       .communicator_creation = creation,
                       .graph = options_.graph == settings::Graph::on &&
                                std::ranges::all_of(steps, &PreparedSection::can_be_captured),
                       .gemm_choices = prepared.choices,
                       .communicators = communicators->facts()};
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

 private:
  CudaOptions options_;
  ChosenGpu chosen_;
  /// Keeps NVML ready for all who open it later: to make it ready may start idle GPUs of the node.
  machine::NvmlLibrary nvml_ = machine::NvmlLibrary::open();
  Description description_;
  GemmChoices choices_;
  // A session moves its communicators here when it ends, so this must outlive every session.
  std::unique_ptr<Communicators> kept_;
};

}  // namespace
}  // namespace isoscale::executor::cuda

namespace isoscale::executor {

std::unique_ptr<Executor> make_cuda_executor(const CudaOptions& options,
                                             const comm::Communicator& world) {
  const cuda::ChosenGpu chosen = cuda::take_gpu(world, options.gpu_bind, options.share);
  std::unique_ptr<Executor> executor;
  cuda::agreed<base::UsageError>(
      world, [&] { executor = std::make_unique<cuda::CudaExecutor>(options, chosen); });
  return executor;
}

}  // namespace isoscale::executor
