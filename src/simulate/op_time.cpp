// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "simulate/op_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.hpp"
#include "program/op.hpp"
#include "program/operands.hpp"
#include "program/program.hpp"
#include "simulate/layout.hpp"

namespace isoscale::simulate {
namespace {

using program::DType;
using program::OpKind;

/// Throws base::UsageError for a part of the machine whose speed is not known; `measured_by` names
/// the options with which a run measures it.
[[noreturn]] void refuse(const Machine& machine, std::string_view what,
                         std::string_view measured_by) {
  throw base::usage_error(
      "{} has no value for {}; add it to the system file, or measure it in the run with {}",
      machine.name.empty() ? "the machine" : machine.name, what, measured_by);
}

/// Throws base::UsageError for communication whose time follows neither from the machine's data
/// sheet nor from its measured times.
[[noreturn]] void refuse_communication(const Machine& machine, std::string_view what,
                                       const GroupPlace& place) {
  if (place.nodes <= 1 || machine.measured.communication.empty()) {
    refuse(machine, fmt::format("{} between ranks", what), "--workload calibrate");
  }
  throw base::usage_error(
      "{}: nothing was measured of {} between nodes; measure on two nodes or more, take the "
      "numbers of a data sheet with --network h100-ndr (isoscale list systems), or give --nodes-of "
      "a number of ranks that holds all",
      machine.name.empty() ? "the machine" : machine.name, what);
}

/// Returns the type under which a machine lists the rate of `type`: both types of fp8 have one
/// rate, listed as e4m3.
DType rate_type(DType type) { return type == DType::e5m2 ? DType::e4m3 : type; }

/// Returns the value for a kind of op, or `other` if the list has none for it.
double value_of(const std::vector<OfKind>& list, OpKind kind, double other) {
  const auto found = std::ranges::find(list, kind, &OfKind::kind);
  return found == list.end() ? other : found->value;
}

/// Returns the rate of GEMMs with this mode and type. Throws base::UsageError if there is none.
const MatrixRate& rate_of(const Machine& machine, program::ComputeMode mode, DType type) {
  if (machine.processor) {
    for (const MatrixRate& rate : machine.processor->matrix) {
      if (rate.type == rate_type(type) && rate.mode == mode) return rate;
    }
  }
  refuse(machine,
         fmt::format("GEMMs in {}",
                     mode == program::ComputeMode::tf32 ? "tf32" : program::name(rate_type(type))),
         "--workload calibrate and that --dtype");
}

/// Returns the fused kernel with which the machine's software computes attention; null if it uses
/// none, or if the machine has no processor. Throws base::UsageError if the processor lacks the
/// kernel.
const AttentionKernel* attention_kernel(const Machine& machine) {
  if (!machine.processor || machine.software.attention.empty()) return nullptr;
  for (const AttentionKernel& kernel : machine.processor->attention) {
    if (kernel.name == machine.software.attention) return &kernel;
  }
  throw base::usage_error(
      "{} has no values for the attention kernel {} of {}; add them to the system file",
      machine.name.empty() ? "the machine" : machine.name, machine.software.attention,
      machine.software.name);
}

/// Returns the seconds from the end of an op to the start of the next one; 0 if they are not known.
double launch_of(const Machine& machine) {
  return machine.processor ? machine.processor->launch : 0;
}

/// Returns the seconds to add before communication begins. Measured times do not contain the gap
/// between ops; the latencies of a data sheet do.
double gap_of(const Machine& machine) { return machine.measured.empty() ? 0 : launch_of(machine); }

/// Returns the seconds in which device memory moves `bytes`, which are read and written bytes
/// together. The memory's bandwidth must be known.
double memory_seconds(const Machine& machine, double bytes) {
  const DeviceMemory& memory = *machine.memory;
  return bytes / (memory.bandwidth * reached_share(memory.reached, bytes));
}

/// Returns the bytes that an optimizer update reads and writes. The moments and the master weights
/// are read and written, so they count twice. The gradients are only read. The weights are only
/// written if there are master weights, otherwise they count twice.
std::uint64_t moved_by(const program::RankProgram& program, const program::Update& op) {
  const auto bytes = [&](const program::Slice& slice) {
    return program::slice_bytes(program, slice);
  };
  const std::uint64_t states = bytes(op.master) + bytes(op.moment1) + bytes(op.moment2);
  const bool has_master = op.master.buffer != program::no_buffer;
  return bytes(op.gradient) + 2 * states + (has_master ? 1U : 2U) * bytes(op.weight);
}

bool on_host(const program::RankProgram& program, const program::Slice& slice) {
  const program::Space space = program.buffers[slice.buffer].space;
  return space == program::Space::pinned || space == program::Space::pageable ||
         space == program::Space::managed;
}

/// The properties that determine an op's time: ops for which all of these are equal take the same
/// time.
struct Likeness {
  OpKind kind = OpKind::gemm;
  std::uint64_t bytes = 0, moved = 0;
  program::GemmShape gemm{};
  std::uint32_t type = 0, mode = 0;
  auto operator<=>(const Likeness&) const = default;
};

/// Computes the times of one program's ops on one rank. Layers and microbatches repeat each other,
/// so the time for each Likeness is computed once.
class ProgramTimes {
 public:
  ProgramTimes(const Machine& machine, const program::RankProgram& program, Places& places,
               int rank)
      : machine_(machine),
        program_(program),
        places_(places),
        rank_(rank),
        kernel_(attention_kernel(machine)) {
    if (kernel_ == nullptr) return;
    scores_.resize(program.buffers.size());
    score_gradients_.resize(program.buffers.size());
    for (const program::Op& op : program.step().ops) {
      if (const auto* const softmax = std::get_if<program::Softmax>(&op.payload)) {
        scores_[softmax->x.slice.buffer] = scores_[softmax->y.slice.buffer] = true;
      } else if (const auto* const gradient = std::get_if<program::SoftmaxGradient>(&op.payload)) {
        score_gradients_[gradient->dy.slice.buffer] = true;
        score_gradients_[gradient->dx.slice.buffer] = true;
      }
    }
  }

  [[nodiscard]] double of(const program::Op& op) {
    return std::visit([&](const auto& payload) { return time(op, payload); }, op.payload);
  }

 private:
  [[nodiscard]] std::uint64_t bytes_of(const program::Slice& slice) const {
    return program::slice_bytes(program_, slice);
  }
  template <class Find>
  [[nodiscard]] double once(const Likeness& likeness, const Find& find) {
    const auto [entry, is_new] = known_.try_emplace(likeness, 0.0);
    if (is_new) entry->second = find();
    return entry->second;
  }
  [[nodiscard]] double local(OpKind kind, std::uint64_t bytes, std::uint64_t moved) {
    return once({.kind = kind, .bytes = bytes, .moved = moved}, [&] {
      return local_seconds(machine_, kind, static_cast<double>(bytes), static_cast<double>(moved));
    });
  }

  /// Returns the seconds of a GEMM that is part of the fused attention kernel; absent if it is not
  /// part of attention. In the forward pass, the product with the values gets the time of the whole
  /// kernel, and the product that computes the scores gets 0. In the backward pass, each of the
  /// four products gets a quarter of the kernel's time. A product that recomputes the scores gets 0
  /// too, since the time of the fused backward kernel includes this.
  [[nodiscard]] std::optional<double> fused_seconds(const program::Gemm& gemm, DType type) const {
    if (kernel_ == nullptr) return std::nullopt;
    const auto touches = [&](const std::vector<bool>& buffers) {
      return buffers[gemm.a.slice.buffer] || buffers[gemm.b.slice.buffer] ||
             buffers[gemm.d.slice.buffer];
    };
    if (!touches(scores_) && !touches(score_gradients_)) return std::nullopt;
    constexpr double causal = 0.5;
    const double seconds =
        causal * flop_of(shape_of(gemm)) / rate_of(machine_, gemm.mode, type).peak;
    if (touches(score_gradients_) || gemm.transpose_a == program::Transpose::yes) {
      // The program has 4 backward products, the kernel 5.
      return 5.0 / 4 * seconds / kernel_->backward;
    }
    return scores_[gemm.d.slice.buffer] ? 0 : 2 * seconds / kernel_->forward;
  }
  template <class Local>
  [[nodiscard]] double time(const program::Op& op, const Local& /*payload*/) {
    constexpr bool is_softmax =
        std::is_same_v<Local, program::Softmax> || std::is_same_v<Local, program::SoftmaxGradient>;
    if (is_softmax && kernel_ != nullptr) return 0;
    const std::uint64_t bytes = program::local_bytes(program_, op.payload);
    return local(program::kind_of(op.payload), bytes, bytes);
  }
  [[nodiscard]] double time(const program::Op& op, const program::Gemm& gemm) {
    const DType type = program_.buffers[gemm.a.slice.buffer].dtype;
    if (const auto fused = fused_seconds(gemm, type)) return *fused;
    const std::uint64_t bytes = program::local_bytes(program_, op.payload);
    const bool adds = gemm.beta != 0 && gemm.c.slice.buffer == gemm.d.slice.buffer &&
                      gemm.c.slice.offset == gemm.d.slice.offset;
    const std::uint64_t sum = adds ? 2 * bytes_of(gemm.d.slice) : 0;
    return once({.kind = OpKind::gemm,
                 .bytes = bytes,
                 .moved = sum,
                 .gemm = shape_of(gemm),
                 .type = static_cast<std::uint32_t>(type),
                 .mode = static_cast<std::uint32_t>(gemm.mode)},
                [&] {
                  return gemm_seconds(machine_, gemm, type, static_cast<double>(bytes)) +
                         sum_seconds(static_cast<double>(sum));
                }) +
           loss_seconds(op.place, gemm);
  }
  [[nodiscard]] double time(const program::Op& op, const program::Update& update) {
    return local(OpKind::update, program::local_bytes(program_, op.payload),
                 moved_by(program_, update));
  }
  [[nodiscard]] double time(const program::Op& op, const program::Copy& copy) {
    const std::uint64_t bytes = program::local_bytes(program_, op.payload);
    const bool leaves = on_host(program_, copy.src.slice) || on_host(program_, copy.dst.slice);
    if (!leaves || !machine_.host) return local(OpKind::copy, bytes, bytes);
    return host_seconds(static_cast<double>(bytes) / 2);  // `bytes` counts reads and writes
  }
  [[nodiscard]] double time(const program::Op& op, const program::Advise& /*advise*/) {
    const std::uint64_t bytes = program::local_bytes(program_, op.payload);
    if (bytes == 0) return launch_of(machine_);
    return machine_.host ? host_seconds(static_cast<double>(bytes))
                         : local(OpKind::copy, bytes, bytes);
  }
  [[nodiscard]] double time(const program::Op& op, const program::Collective& collective) {
    const GroupPlace& place = places_.of_groups(collective.axes)[at(rank_)];
    const std::uint64_t send = bytes_of(collective.send), receive = bytes_of(collective.receive);
    const auto members = static_cast<std::uint64_t>(place.members);
    std::uint64_t bytes = std::max(send, receive);
    const OpKind kind = program::kind_of(op.payload);
    if (kind == OpKind::all_gather || kind == OpKind::gather) bytes = send * members;
    if (kind == OpKind::scatter) bytes = receive * members;
    if (kind == OpKind::barrier) bytes = 0;
    return once({.kind = kind, .bytes = bytes, .type = collective.axes.bits()}, [&] {
      return gap_of(machine_) +
             collective_seconds(machine_, kind, static_cast<double>(bytes), place);
    });
  }
  [[nodiscard]] double time(const program::Op& /*op*/, const program::Exchange& exchange) {
    // Messages in one direction share a link and follow one another. The two directions run at the
    // same time.
    std::array<double, 2> ways{};
    for (const program::Transfer& transfer : exchange.transfers) {
      const auto bytes = static_cast<double>(bytes_of(transfer.slice));
      ways[static_cast<std::size_t>(transfer.direction)] += message_seconds(
          machine_, bytes, places_.of_messages(transfer.axis, transfer.offset)[at(rank_)]);
    }
    return gap_of(machine_) + std::ranges::max(ways);
  }

  /// Returns the seconds of the separate op in which the software adds the product of a GEMM to its
  /// result; 0 if the software has no such op, or if nothing is known of the memory. `bytes` are
  /// those of reading and writing the result.
  [[nodiscard]] double sum_seconds(double bytes) const {
    if (bytes == 0 || !machine_.memory || machine_.software.accumulate == 0) return 0;
    return launch_of(machine_) + memory_seconds(machine_, machine_.software.accumulate * bytes);
  }
  /// Returns the seconds of the loss if the GEMM is the projection to the vocabulary (the only
  /// forward GEMM that is in no layer). Returns 0 for other GEMMs, and if Software::logit_bytes is
  /// 0 or nothing is known of the memory.
  [[nodiscard]] double loss_seconds(const program::Place& place, const program::Gemm& gemm) const {
    const double bytes = machine_.software.logit_bytes * gemm.m * gemm.n;
    const bool is_projection = place.phase == program::Phase::forward && place.layer < 0;
    return is_projection && bytes > 0 && machine_.memory ? memory_seconds(machine_, bytes) : 0;
  }
  [[nodiscard]] double host_seconds(double bytes) const {
    const Link& link = *machine_.host;
    return launch_of(machine_) + link.latency + bytes / (link.bandwidth * link.reached);
  }

  const Machine& machine_;
  const program::RankProgram& program_;
  Places& places_;
  int rank_;
  const AttentionKernel* kernel_;  ///< null if attention is not fused
  /// For each buffer: `scores_` is true if it has attention scores, `score_gradients_` if it has
  /// their gradients. Both are empty if attention is not fused.
  std::vector<bool> scores_, score_gradients_;
  std::map<Likeness, double> known_;
};

/// True for the ops of a microbatch's pass and for updates by the optimizer. False for messages
/// (between stages, and around rings of tp and cp) and for collectives of replicas: those along dp,
/// and those along ep except the all-to-all of experts.
bool is_inside_pass(const program::Op& op) {
  const auto* const collective = std::get_if<program::Collective>(&op.payload);
  if (collective == nullptr) return !std::holds_alternative<program::Exchange>(op.payload);
  const bool shares_states = collective->axes.contains(mesh::Axis::ep) &&
                             collective->kind != program::CollectiveKind::all_to_all;
  return !shares_states && !collective->axes.contains(mesh::Axis::dp);
}

/// True for an op that gathers or reduces a bucket of sharded states in a microbatch's pass.
bool is_of_bucket(const program::Op& op) {
  const program::OpKind kind = program::kind_of(op.payload);
  const bool moves_a_part =
      kind == program::OpKind::all_gather || kind == program::OpKind::reduce_scatter;
  return moves_a_part && !is_inside_pass(op) && op.place.microbatch >= 0;
}

/// Makes ops longer where the host is slower than the device. The host launches an op while the
/// device executes the one before it. An op of the main stream (stream 0) therefore takes at least
/// as long as the host needs for the ops that follow it, up to and including the next one of the
/// main stream. Since steps repeat, the first op of the main stream follows the last.
/// Ops on other streams take host time too, as do buckets of sharded states. Messages and
/// collectives of replicas (see is_inside_pass) take none, nor does an op that takes no time on the
/// device, since it is part of another op's kernel. The first op of the optimizer also takes
/// Software::host_step.
void add_host_time(const Software& software, const program::Program& source,
                   std::vector<double>& seconds) {
  double next = 0;  // host time of the ops after op i, up to the next one of the main stream
  // The loop goes backwards through the ops, twice: the second time, `next` begins with the host
  // time of the step's first ops, which follow its last ones.
  for (std::size_t left = 2 * source.ops.size(); left-- > 0;) {
    const std::size_t i = left % source.ops.size();
    const program::Op& op = source.ops[i];
    if (is_of_bucket(op)) next += software.host_bucket;
    if (!is_inside_pass(op) || seconds[i] == 0) continue;
    if (op.stream == 0) seconds[i] = std::max(seconds[i], std::exchange(next, 0));
    next += value_of(software.host, program::kind_of(op.payload), software.host_op);
  }
  const auto optimizer = std::ranges::find(source.ops, program::Phase::optimizer,
                                           [](const auto& op) { return op.place.phase; });
  if (optimizer == source.ops.end()) return;
  seconds[static_cast<std::size_t>(optimizer - source.ops.begin())] += software.host_step;
}

}  // namespace

double gemm_seconds(const Machine& machine, const program::Gemm& gemm, DType type, double bytes) {
  if (const auto known = measured_gemm_seconds(machine.measured, gemm, type)) {
    return launch_of(machine) + *known;
  }
  const MatrixRate& rate = rate_of(machine, gemm.mode, type);
  const double multiplies = multiply_seconds(*machine.processor, rate, shape_of(gemm));
  const double moves = machine.memory ? memory_seconds(machine, bytes) : 0;
  return launch_of(machine) + std::max(multiplies, moves);
}

double local_seconds(const Machine& machine, OpKind kind, double bytes, double moved) {
  if (const auto known = measured_local_seconds(machine.measured, kind, bytes)) {
    return launch_of(machine) + *known;
  }
  if (!machine.memory) {
    refuse(machine, "the bandwidth of device memory", "--trace-steps 4, or with --workload memory");
  }
  return launch_of(machine) +
         memory_seconds(machine, moved * value_of(machine.software.traffic, kind, 1));
}

double collective_seconds(const Machine& machine, OpKind kind, double bytes,
                          const GroupPlace& place) {
  if (const auto known = measured_collective_seconds(machine.measured, kind, bytes, place)) {
    return *known;
  }
  if (!machine.network) refuse_communication(machine, program::name(kind), place);
  return network_collective(*machine.network, kind, bytes, place).seconds;
}

double message_seconds(const Machine& machine, double bytes, const GroupPlace& place) {
  if (const auto known = measured_message_seconds(machine.measured, bytes, place)) return *known;
  if (!machine.network) refuse_communication(machine, "messages", place);
  return network_message(*machine.network, bytes, place);
}

std::vector<units::Nanoseconds> op_times(const Machine& machine,
                                         const program::RankProgram& program, Places& places,
                                         int rank) {
  ProgramTimes times{machine, program, places, rank};
  const program::Program& source = program.step();
  std::vector<double> seconds;
  seconds.reserve(source.ops.size());
  for (const program::Op& op : source.ops) seconds.push_back(times.of(op));
  add_host_time(machine.software, source, seconds);
  std::vector<units::Nanoseconds> result;
  result.reserve(seconds.size());
  for (const double time : seconds) result.emplace_back(std::llround(time * 1e9));
  return result;
}

}  // namespace isoscale::simulate
