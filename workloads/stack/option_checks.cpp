// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "workloads/stack/experts.hpp"
#include "workloads/stack/options.hpp"
#include "workloads/stack/partitioning.hpp"
#include "workloads/stack/training_state_buffers.hpp"

namespace isoscale::workloads::stack {

namespace {

/// An option that another one excludes: its key, the neutral value that is still allowed, and why
/// other values are not.
struct Exclusion {
  std::string_view key, neutral, why;
};

/// Returns the value of an option if it was given and differs from `neutral`, else "".
std::string departure(const Request& request, std::string_view key, std::string_view neutral) {
  const auto given = request.options.find(key);
  return given == request.options.end() || given->second == neutral ? "" : given->second;
}

/// Throws base::UsageError for the first of `options` that was given and differs from its neutral
/// value. The message begins with `head`, such as "zero=1 excludes", and ends with `tail`.
void exclude(const Request& request, std::string_view head,
             std::initializer_list<Exclusion> options, std::string_view tail = "") {
  for (const auto& [key, neutral, why] : options) {
    const std::string given = departure(request, key, neutral);
    if (given.empty()) continue;
    throw usage_error("{} {}={}: {}; use {}={}{}", head, key, given, why, key, neutral, tail);
  }
}

void require_funnel(const Request& request) {
  constexpr std::string_view why =
      "the first replica gets all gradients after backward, and all replicas get equal work";
  exclude(request, "strategy=funnel cannot be combined with",
          {{"overlap", "off", why},
           {"partition", "equal", why},
           {"grad_dtype", "same", why},
           {"compression", "none", why},
           {"zero", "0", why},
           {"offload", "none", why}});
  for (const mesh::Axis axis : {mesh::Axis::cp, mesh::Axis::ep}) {
    if (request.mesh[axis] == 1) continue;
    throw usage_error(
        "strategy=funnel cannot be combined with {}={}: it has one row of replicas, "
        "along dp; use {}=1",
        mesh::to_string(mesh::AxisSet{axis}), request.mesh[axis],
        mesh::to_string(mesh::AxisSet{axis}));
  }
}

/// Returns a text with the divisors of `number` nearest below and, if there is one, above `wanted`.
std::string divisors_near(long long number, long long wanted) {
  long long below = wanted - 1, above = wanted + 1;
  while (number % below != 0) --below;  // ends at 1 at the latest
  while (above < number && number % above != 0) ++above;
  if (above > number) return std::to_string(below);
  return fmt::format("{} and {}", below, above);
}

void require_consistent(const TrainingOptions& options) {
  const bool splits = options.sequence_parallel, ring = options.ring;
  const bool gathers = options.tp_output == TpOutput::gather;
  const long long chunks = options.chunks;
  if (splits && gathers) {
    throw base::UsageError(
        "sequence_parallel=on excludes tp_output=gather, whose outputs are whole on every rank; "
        "use tp_output=reduce, or sequence_parallel=off");
  }
  if (chunks > 1 && gathers) {
    throw usage_error(
        "chunks={} excludes tp_output=gather, which has no sum over tp to cut; use "
        "tp_output=reduce, or chunks=1",
        chunks);
  }
  if (ring && !splits) {
    throw base::UsageError(
        "ring=on needs sequence_parallel=on: the ring passes on each rank's part of the rows; use "
        "both, or ring=off");
  }
  if (ring && chunks > 1) {
    throw usage_error(
        "chunks={} excludes ring=on, which cuts the rows into tp parts itself; use "
        "chunks=1, or ring=off",
        chunks);
  }
}

void require_zero(const Request& scaled, const TrainingOptions& options, const StatePlan& plan) {
  const std::string head = fmt::format("zero={} excludes", options.zero);
  if (options.zero == 0 || options.zero == 3) {
    exclude(scaled, head,
            {{"gather", "step_end",
              options.zero == 0 ? "every replica updates all weights itself"
                                : "weights are gathered before each use of them"}},
            ", or zero=1|2");
  }
  if (plan.zero == 0) return;
  exclude(scaled, head,
          {{"strategy", "ddp", "one rank has all states then"},
           {"compression", "none", "replicas then exchange gradients of whole tensors"}},
          ", or zero=0");
  if (plan.shards_gradients()) {
    exclude(
        scaled, head,
        {{"partition", "equal", "every replica takes part in a reduction after each microbatch"}},
        ", or zero=0");
  }
  const bool offloads_weights = plan.offload == Offload::weights;
  if (plan.shards_weights() && offloads_weights) {
    throw usage_error(
        "zero=3 excludes offload=weights: with {}={} a rank keeps 1/{} of the weights already; use "
        "zero=2, or offload=none",
        mesh::name(plan.axis), plan.shards, plan.shards);
  }
  if (offloads_weights && plan.is_managed()) {
    throw usage_error(
        "zero={} excludes offload=weights with offload_memory=managed: replicas gather "
        "weights in device memory; use offload_memory=pinned, or zero=0",
        plan.zero);
  }
  if (offloads_weights && plan.gathers_next_step) {
    throw usage_error(
        "gather=next_step excludes offload=weights, whose weights are on the device for an update "
        "only; use gather=step_end, or offload=none");
  }
  if (plan.shards_weights()) {
    const std::string reduce = departure(scaled, "reduce_bucket", "");
    if (!reduce.empty()) {
      throw usage_error(
          "zero=3 has no reduce_bucket={}: a rank updates the part of a bucket that it keeps, so "
          "gradients are reduced in the buckets in which weights are gathered; use "
          "gather_bucket={}",
          reduce, reduce);
    }
  }
}

/// The most row indices in the programs of all ranks together; they take about 4 GiB.
constexpr double most_indices = 1e9;

void require_numbers(const Request& scaled, const TrainingOptions& options,
                     const Routing& routing) {
  const int ep = scaled.mesh.ep;
  const int experts = static_cast<int>(routing.experts);
  if (experts % ep != 0) {
    const int below = std::max(1, experts / ep) * ep, above = (experts / ep + 1) * ep;
    throw usage_error(
        "ep={} does not divide experts={}; the nearest that it does are {}", ep, experts,
        below == above ? fmt::format("{}", below) : fmt::format("{} and {}", below, above));
  }
  if (routing.topk > routing.experts) {
    throw usage_error("topk={} of experts={}: a token's experts are distinct; use topk={} or fewer",
                      routing.topk, experts, experts);
  }
  if (options.expert_batch == ExpertBatch::padded && routing.capacity == 0) {
    throw base::UsageError(
        "expert_batch=padded pads to the capacity, and there is none: use capacity=1.25, or "
        "expert_batch=exact");
  }
}

void require_alone(const Request& scaled, const TrainingOptions& options) {
  if (types_of(scaled.precision).casts_operands()) {
    throw base::UsageError(
        "experts exclude --dtype fp8, whose GEMMs want rows in multiples of 16; use --dtype bf16");
  }
  if (options.elementwise) {
    throw base::UsageError("experts exclude elementwise=on: their MLPs are GEMMs alone; use off");
  }
  exclude(scaled, "experts exclude",
          {{"recompute", "none", "rows would travel again"},
           {"zero", "0", "their parameters are resident"},
           {"offload", "none", "their parameters are resident"},
           {"strategy", "ddp", "rank 0 would have to hold them all"},
           {"compression", "none", "their gradients have other replicas"},
           {"partition", "equal", "ranks along ep meet in every microbatch"}});
  if (scaled.mesh.tp == 1) return;
  const auto refuse = [](std::string_view option, std::string_view instead) {
    throw usage_error("experts exclude {}: rows are routed whole; use {}", option, instead);
  };
  if (options.tp_output == TpOutput::gather) refuse("tp_output=gather", "tp_output=reduce");
  if (options.sequence_parallel) refuse("sequence_parallel=on", "sequence_parallel=off");
  if (options.chunks > 1) refuse(fmt::format("chunks={}", options.chunks), "chunks=1");
}

/// Throws base::UsageError if the programs would be too large: each rank has a program of its own,
/// with the indices of all rows that it sends, receives and moves.
void require_size(const Request& scaled, const TrainingOptions& options, const Routing& routing) {
  constexpr double moves = 6;
  const double samples = static_cast<double>(options.batch);
  const double indices =
      moves * samples * static_cast<double>(routing.sequence) * routing.topk * scaled.model.layers;
  if (indices <= most_indices) return;
  // The suggested batch has whole microbatches (with schedule=interleaved: a multiple of pp).
  const int round = options.schedule == Schedule::interleaved ? scaled.mesh.pp : 1;
  const double unit = samples / static_cast<double>(options.microbatches) * round;
  const double fits = std::floor(samples * most_indices / indices / unit) * unit;
  throw usage_error(
      "routing batch={} x sequence={} x topk={} through {} layers makes a plan of {:.0f} row "
      "numbers, {:.0f} are allowed; use {}",
      options.batch, routing.sequence, routing.topk, scaled.model.layers, indices, most_indices,
      fits >= 1 ? fmt::format("batch={:.0f} or fewer", fits)
                : "a model with fewer layers or a shorter sequence");
}

/// Throws base::UsageError if a rank's softmax has more rows than fit in a signed 32-bit number. It
/// has one for each sample of a microbatch, position and head, and no other op has as many.
void require_countable_rows(long long samples, long long positions, long long heads) {
  const long long most = std::numeric_limits<std::int32_t>::max() / (positions * heads);
  if (samples <= most) return;
  throw usage_error(
      "microbatch={} x {} positions x {} heads are more rows than an op can count; {}", samples,
      positions, heads,
      most > 0 ? fmt::format("use microbatch={} or fewer", most)
               : "use a larger cp or tp, or a shorter sequence");
}

/// An option that has an effect only with another one: its key, a function that returns true if it
/// has an effect, and a text that says what it needs.
struct Dependence {
  std::string_view key;
  bool (*has_effect)(const TrainingOptions& options);
  std::string_view needs;
};

bool interleaves(const TrainingOptions& options) {
  return options.schedule == Schedule::interleaved;
}
bool compresses(const TrainingOptions& options) { return options.compression == Compression::topk; }
bool has_experts(const TrainingOptions& options) { return options.experts > 0; }

constexpr std::string_view with_experts = "experts", with_topk = "compression=topk";

constexpr Dependence dependences[] = {
    {"v", interleaves, "schedule=interleaved"},
    {"compression_ratio", compresses, with_topk},
    {"compression_block", compresses, with_topk},
    {"reduce_bucket", [](const TrainingOptions& o) { return o.zero > 0; }, "zero=1|2"},
    {"gather_bucket", [](const TrainingOptions& o) { return o.zero == 3; }, "zero=3"},
    {"prefetch",
     [](const TrainingOptions& o) { return o.zero == 3 || o.offload == Offload::weights; },
     "zero=3 or offload=weights"},
    {"reduces_in_flight", [](const TrainingOptions& o) { return o.zero >= 2; }, "zero=2|3"},
    {"offload_memory", [](const TrainingOptions& o) { return o.offload != Offload::none; },
     "offload=weights|optimizer"},
    {"topk", has_experts, with_experts},
    {"capacity", has_experts, with_experts},
    {"skew", has_experts, with_experts},
    {"expert_batch", has_experts, with_experts},
    {"expert_placement", has_experts, with_experts},
};

}  // namespace

std::map<std::string, std::string> idle_options(const std::vector<const Request*>& requests) {
  std::map<std::string, std::string> idle;
  for (const auto& [key, has_effect, needs] : dependences) {
    const std::string_view neutral = find_option(option_table(), key).default_value;
    std::string given;
    for (const Request* const request : requests) {
      if (has_effect(options_of(*request))) {
        given.clear();
        break;
      }
      if (given.empty()) given = departure(*request, key, neutral);
    }
    if (given.empty()) continue;
    idle.emplace(key, fmt::format("{}={} has no effect without {}", key, given, needs));
  }
  return idle;
}

void require_data(const Request& scaled) {
  const TrainingOptions options = options_of(scaled);
  if (options.strategy == Strategy::funnel) require_funnel(scaled);
  if (options.compression == Compression::topk) {
    constexpr std::string_view why = "it sends whole buckets in the gradients' own type";
    exclude(scaled, "compression=topk cannot be combined with",
            {{"grad_dtype", "same", why}, {"zero", "0", why}});
  }
  require_partition(scaled);
}

void require_tensor(const Request& scaled) {
  const TrainingOptions options = options_of(scaled);
  require_consistent(options);
  const mesh::Shape& mesh = scaled.mesh;
  const long long sequence = scaled.model.sequence;
  if (sequence % mesh.cp != 0) {
    throw usage_error("cp={} does not divide the sequence of {}; the nearest cp that do are {}",
                      mesh.cp, sequence, divisors_near(sequence, mesh.cp));
  }
  const long long local = sequence / mesh.cp, chunks = options.chunks;
  require_countable_rows(options.microbatch, local, std::max(1, scaled.model.heads / mesh.tp));
  if (mesh.tp == 1) return;
  if (!options.sequence_parallel) {
    const long long rows = local * options.microbatch;
    if (rows % chunks == 0) return;
    throw usage_error(
        "chunks={} does not divide the {} rows (sequence x microbatch) of a rank; the nearest "
        "chunks that do are {}",
        chunks, rows, divisors_near(rows, chunks));
  }
  if (local % mesh.tp != 0) {
    throw usage_error(
        "sequence_parallel=on: tp={} does not divide the {} positions that a rank has of the "
        "sequence of {} (cp={}); the nearest tp that do are {}",
        mesh.tp, local, sequence, mesh.cp, divisors_near(local, mesh.tp));
  }
  const long long part = local / mesh.tp;
  if (part % chunks == 0) return;
  throw usage_error(
      "chunks={} does not divide the {} positions that sequence_parallel=on leaves a rank of "
      "tp={}; the nearest chunks that do are {}",
      chunks, part, mesh.tp, divisors_near(part, chunks));
}

void require_fp8_extents(const Geometry& g) {
  const auto require = [&](std::uint64_t number, std::string_view what, std::string_view fix) {
    if (number % fp8_multiple == 0) return;
    throw usage_error(
        "--dtype fp8: {} = {} is not a multiple of {}, as fp8 GEMMs need; use {}, or --dtype bf16",
        what, number, fp8_multiple, fix);
  };
  const auto tp = static_cast<std::uint64_t>(g.tp);
  const std::string_view smaller_tp = g.tp > 1 ? "a smaller tp" : "another model";
  require(g.tokens, fmt::format("sequence x microbatch = {} x {}", g.sequence, g.microbatch),
          "a microbatch that makes it one");
  require(g.hidden, "hidden", "another model");
  require(g.ffn, "ffn on a rank", smaller_tp);
  require(g.context, "heads x head_size on a rank", smaller_tp);
  require(g.qkv, "(heads + 2 x kv_heads) x head_size on a rank", smaller_tp);
  if (g.gathers()) require(g.hidden / tp, "hidden on a rank", "a smaller tp, or tp_output=reduce");
  // Rows that are sent in parts are multiplied part by part, so the rows of each part must be a
  // multiple of 16, too. If the parts would differ in size, require_tensor() throws an error.
  if (g.ring && g.tokens % tp == 0) {
    require(g.shard_tokens,
            fmt::format("sequence x microbatch / tp = {} x {} / {}", g.sequence, g.microbatch, tp),
            "a larger microbatch, ring=off");
  }
  if (g.chunks > 1 && g.tokens % g.chunks == 0) {
    require(g.tokens / g.chunks,
            fmt::format("sequence x microbatch / chunks = {} x {} / {}", g.sequence, g.microbatch,
                        g.chunks),
            "a larger microbatch, fewer chunks");
  }
}

void require_states(const Request& scaled) {
  const StatePlan plan = state_plan_of(scaled);
  const Types types = types_of(scaled.precision);
  const TrainingOptions options = options_of(scaled);
  require_zero(scaled, options, plan);
  if (plan.offload == Offload::optimizer && options.optimizer == program::Optimizer::sgd &&
      !types.has_master()) {
    throw usage_error(
        "offload=optimizer has nothing to offload: optimizer=sgd has no moments, and --dtype {} no "
        "masters; use optimizer=adam, or offload=none",
        name(scaled.precision));
  }
}

void require_experts(const Request& scaled) {
  const TrainingOptions options = options_of(scaled);
  const Routing routing = routing_of(scaled);
  if (!routing.has_experts()) {
    if (scaled.mesh.ep == 1 || options.zero > 0) return;
    throw usage_error(
        "ep={} has no experts to share out, and no states; use experts={}, zero=1, 2 or 3, or ep=1",
        scaled.mesh.ep, scaled.mesh.ep);
  }
  require_numbers(scaled, options, routing);
  require_alone(scaled, options);
  require_size(scaled, options, routing);
}

}  // namespace isoscale::workloads::stack
