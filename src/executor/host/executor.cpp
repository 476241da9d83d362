// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <set>

#include "base/text.hpp"
#include "executor/executor.hpp"
#include "executor/host/resources.hpp"
#include "executor/host/stream_threads.hpp"
#include "machine/procfs_and_cgroups.hpp"
#include "units/quantity_text.hpp"

namespace isoscale::executor::host {
namespace {

/// The parts of a session that are made before its sections are prepared.
struct SessionParts {
  Communicators communicators;
  std::array<Storage, program::space_count> arenas;
  /// Memory for copies that MPI needs, by stream; see staging_bytes().
  std::array<Storage, program::max_streams> staging;
  SessionFacts facts;
  PrepareOptions options;
  Waiting waiting = Waiting::blocking;  ///< how the calling thread waits
};

ArenaPointers pointers(const std::array<Storage, program::space_count>& arenas) {
  ArenaPointers result{};
  for (std::size_t i = 0; i < arenas.size(); ++i) result[i] = arenas[i].get().address;
  return result;
}

class HostSession final : public Session {
 public:
  HostSession(const program::ProgramSet& set, int rank, SessionParts parts)
      : parts_(std::move(parts)), resolver_(set.of(rank), set.mesh, rank, pointers(parts_.arenas)) {
    std::size_t lanes = 1;
    for (const program::Program* program : set.of(rank).sections()) {
      const PreparedSection& section = sections_.emplace_back(
          prepare(resolver_, *program, parts_.communicators, parts_.options));
      lanes = std::max(lanes, section.lanes.size());
    }
    threads_.emplace(lanes, parts_.waiting);
  }
  ~HostSession() override {
    threads_.reset();
    if (!failed_) return;
    // Messages may still be in flight, so their storage and communicators must outlive this object.
    parts_.communicators.abandon();
    for (Storage& arena : parts_.arenas) static_cast<void>(arena.release());
    for (Storage& staging : parts_.staging) static_cast<void>(staging.release());
  }
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;

  PlayTime play(const Play& what) override {
    if (failed_) throw base::Error("a session whose play has failed cannot play again");
    const PreparedSection& prepared = sections_.at(static_cast<std::size_t>(what.section));
    const std::uint32_t passes = what.trace == Trace::on ? 1 : what.times;
    Spans spans;
    if (what.trace == Trace::on) {
      spans_.resize(prepared.op_count);
      spans = spans_;
    }
    threads_->set_patience(units::to_nanoseconds(what.timeout));
    section_.store(what.section, std::memory_order_relaxed);
    playing_.store(true, std::memory_order_relaxed);
    const units::Nanoseconds begin = comm::now();
    try {
      for (std::uint32_t pass = 0; pass < passes; ++pass) {
        plays_.fetch_add(1, std::memory_order_relaxed);
        threads_->begin(prepared, spans);
        threads_->play_lane(0);
        threads_->end();
      }
    } catch (...) {
      failed_ = true;
      playing_.store(false, std::memory_order_relaxed);
      throw;
    }
    const units::Nanoseconds end = comm::now();
    playing_.store(false, std::memory_order_relaxed);
    return {.begin = begin, .end = end};
  }
  [[nodiscard]] std::span<const timeline::Span> spans() const override { return spans_; }
  void read(const program::Slice& slice, std::span<std::byte> into) override {
    std::memcpy(into.data(), resolver_.address(slice, into.size()), into.size());
  }
  void write(const program::Slice& slice, std::span<const std::byte> from) override {
    std::memcpy(resolver_.address(slice, from.size()), from.data(), from.size());
  }
  [[nodiscard]] const SessionFacts& facts() const override { return parts_.facts; }
  void abandon() noexcept override { failed_ = true; }
  [[nodiscard]] std::optional<Whereabouts> whereabouts() const override {
    Whereabouts result{.section = section_.load(std::memory_order_relaxed),
                       .plays = plays_.load(std::memory_order_relaxed),
                       .playing = playing_.load(std::memory_order_relaxed)};
    result.begun = threads_->begun();
    result.begun.resize(sections_.at(static_cast<std::size_t>(result.section)).lanes.size());
    return result;
  }

 private:
  SessionParts parts_;
  Resolver resolver_;
  std::vector<PreparedSection> sections_;  ///< indexed by program::Section
  std::vector<timeline::Span> spans_;
  std::atomic<program::Section> section_{program::Section::step};  ///< the current or last section
  std::atomic<std::uint64_t> plays_{0};
  std::atomic<bool> playing_{false};
  std::optional<StreamThreads> threads_;  ///< lanes: the largest number of any section
  bool failed_ = false;
};

std::size_t stream_count(const program::RankProgram& program) {
  std::set<program::StreamId> used;
  for (const program::Program* section : program.sections()) {
    for (const program::Op& op : section->ops) used.insert(op.stream);
  }
  return used.size();
}

/// Collective over `point`. If the ranks of a node together need more memory than is free on the
/// node, all ranks of this node throw base::Error. If the free memory is not known, no rank throws.
/// The function must be called before memory is allocated.
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
    blas_threads_ = set_blas_threads(options.blas_threads);
    description_.name = "host";
    description_.detail = fmt::format(
        "{}, {}", blas_name(),
        blas_threads_ == 0 ? "unknown number of threads" : base::counted(blas_threads_, "thread"));
    const std::string warning = blas_warning();
    if (!warning.empty()) description_.facts_text["blas_warning"] = warning;
    description_.precisions = {program::Precision::f64, program::Precision::f32};
    description_.memory_free = machine::memory_available(machine::read_file);
    description_.cores = cores_of_this_rank(options.ranks_on_node);
    description_.symmetric_problem =
        "transport=symmetric needs NCCL's symmetric windows: --device cuda";
  }

  [[nodiscard]] const Description& describe() const override { return description_; }

  [[nodiscard]] SessionPtr prepare(const program::ProgramSet& set, const comm::Communicator& point,
                                   const SessionOptions& options) override {
    require_usual_communication(options, "host");
    require_transports(set, description_);
    // The communicators are made before anything that may fail on this rank alone, since making
    // them is collective: the other ranks would wait forever for a rank that had failed. The two
    // checks above fail on all ranks or on none.
    const units::Nanoseconds before = comm::now();
    Communicators communicators{communication_needs(set), set.mesh, point};
    const units::Seconds creation = units::to_seconds(comm::now() - before);
    const program::RankProgram& program = set.of(point.rank());
    const std::size_t streams = stream_count(program);
    const std::string reason = reason_to_fold(streams);
    const bool folds = streams <= 1 || !reason.empty();
    const Waiting waiting = waiting_of_all(folds ? 1 : streams, options.faults, point);
    const auto staging = staging_bytes(program, set.mesh, options_.elements_per_call);
    units::Bytes need = std::accumulate(staging.begin(), staging.end(), units::Bytes{0});
    for (const std::uint64_t bytes : program.arena_bytes) need += units::Bytes{bytes};
    require_memory(need, point);

    SessionParts parts{
        .communicators = std::move(communicators),
        .arenas = {},
        .staging = {},
        .facts = {.folded = !reason.empty(),
                  .folded_reason = reason,
                  .blas_threads = blas_threads_,
                  .memory = need,
                  .host_memory = units::Bytes{program.host_bytes()},
                  .communicator_creation = creation},
        .options = {.folding = folds ? program::Folding::folded : program::Folding::as_streamed,
                    .elements_per_call = options_.elements_per_call,
                    .faults = options.faults},
        .waiting = waiting};
    on_numa_node(options, [&] {
      for (std::size_t space = 0; space < program::space_count; ++space) {
        parts.arenas[space] = allocate(units::Bytes{program.arena_bytes[space]});
      }
      for (std::size_t stream = 0; stream < staging.size(); ++stream) {
        parts.staging[stream] = allocate(staging[stream]);
        const Mapping& memory = parts.staging[stream].get();
        parts.options.staging[stream] = {memory.address, memory.bytes};
      }
    });
    return std::make_unique<HostSession>(set, point.rank(), std::move(parts));
  }

 private:
  /// Returns the reason why one thread runs all streams; "" if each stream has its own thread.
  [[nodiscard]] std::string reason_to_fold(std::size_t streams) const {
    if (streams <= 1) return {};
    if (options_.streams == HostStreams::folded) return "asked for";
    if (!options_.threads_may_talk) return "MPI does not let several threads communicate";
    constexpr int least_cores = 2;
    if (options_.streams == HostStreams::automatic && description_.cores < least_cores) {
      return "the rank has fewer than two cores";
    }
    return {};
  }
  /// Returns how the threads of all ranks wait for messages. Collective, since all ranks must wait
  /// in the same way: if one rank calls a non-blocking collective and another the blocking one, MPI
  /// takes them for two different collectives. A thread with its own core waits for collectives
  /// inside MPI (blocking). The only thread of a rank does so too, since MPI itself yields the core
  /// if it knows that ranks share cores. Several threads that share cores poll, less often the
  /// longer they wait (ladder). Injected delays, which replace multiplications, are meant for ranks
  /// that share cores without MPI knowing it. Threads then sleep while they wait (asleep), so that
  /// other ranks get the cores. If the ranks differ, all use the way that comes last in the
  /// order blocking, ladder, asleep.
  [[nodiscard]] Waiting waiting_of_all(std::size_t threads, const program::Faults& faults,
                                       const comm::Communicator& point) const {
    const bool has_cores = threads <= 1 || description_.cores >= static_cast<int>(threads);
    const Waiting best = faults.gemm_rate != 0 ? Waiting::asleep
                         : has_cores           ? Waiting::blocking
                                               : Waiting::ladder;
    return static_cast<Waiting>(point.all_max(static_cast<int>(best)));
  }

  HostOptions options_;
  int blas_threads_ = 0;
  Description description_;
};

}  // namespace
}  // namespace isoscale::executor::host

namespace isoscale::executor {

std::unique_ptr<Executor> make_host_executor(const HostOptions& options) {
  return std::make_unique<host::HostExecutor>(options);
}

}  // namespace isoscale::executor
