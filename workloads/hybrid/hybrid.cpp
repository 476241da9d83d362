// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/hybrid/hybrid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <numeric>

#include "workloads/stack/experts.hpp"
#include "workloads/stack/pipeline.hpp"
#include "workloads/stack/training_state_buffers.hpp"

namespace isoscale::workloads::hybrid {

namespace {

constexpr long long default_microbatch = 4, default_microbatches = 16;

/// The largest number of layers x microbatches in a stage. With about 20 ops for each layer and
/// microbatch, the program of such a stage takes a few GB.
constexpr long long most_layer_passes = 250'000;

/// A number of samples, split into microbatches: batch = microbatch * microbatches.
struct BatchPlan {
  long long microbatch = 0, microbatches = 0;
  [[nodiscard]] long long batch() const { return microbatch * microbatches; }
};

/// The options as the user gave them.
using Given = stack::TrainingOptions;

/// Splits the batch over `replicas` replicas: each replica gets fewer microbatches of the same
/// size. Microbatches become smaller only if a replica would get less than one. If the batch cannot
/// be divided, `problem` gets the reason.
BatchPlan split(const Given& given, long long replicas, std::string_view replicas_text,
                std::string& problem) {
  BatchPlan plan{.microbatch = default_microbatch, .microbatches = default_microbatches};
  if (given.batch > 0) plan.microbatch = std::min(given.batch, default_microbatch);
  if (given.microbatch > 0) plan.microbatch = given.microbatch;
  if (given.microbatches > 0) plan.microbatches = given.microbatches;
  const auto divided = [&](long long batch, long long by, std::string_view name) {
    if (batch % by != 0)
      problem = fmt::format("batch={} does not divide by {}={}", batch, name, by);
    return batch / by;
  };
  if (given.batch > 0 && given.microbatches > 0) {
    plan.microbatch = divided(given.batch, plan.microbatches, "microbatches");
  } else if (given.batch > 0) {
    plan.microbatches = divided(given.batch, plan.microbatch, "microbatch");
  }
  if (!problem.empty()) return plan;
  const long long each = divided(plan.batch(), replicas, replicas_text);
  if (!problem.empty()) return plan;
  if (each <= plan.microbatch) return {.microbatch = each, .microbatches = 1};
  if (each % plan.microbatch != 0) {
    problem = fmt::format(
        "batch={} over {}={} leaves {} samples a replica, which microbatch={} does not divide",
        plan.batch(), replicas_text, replicas, each, plan.microbatch);
  }
  return {.microbatch = plan.microbatch, .microbatches = each / plan.microbatch};
}

/// Returns the numbers nearest to `number`, the value of `key`, with which the batch can be
/// divided.
std::vector<long long> suggested(const Given& given, long long Given::*key, long long number,
                                 long long replicas) {
  return nearest_accepted(number, [&](long long candidate) {
    Given other = given;
    other.*key = candidate;
    std::string problem;
    static_cast<void>(split(other, replicas, "", problem));
    return problem.empty();
  });
}

/// Returns the split of the batch. Throws base::UsageError if batch, microbatch and microbatches
/// contradict each other, and NumberError if the batch cannot be divided. The error suggests
/// numbers that fit the other options. If all three were given, `batch` must be left out with them.
BatchPlan batch_plan(const Request& base, long long replicas, std::string_view replicas_text) {
  const Given given = stack::options_of(base);
  const long long product = given.microbatch * given.microbatches;
  if (given.batch > 0 && product > 0 && given.batch != product) {
    throw usage_error(
        "batch={} is not microbatch={} x microbatches={} = {}; give any two of the three",
        given.batch, given.microbatch, given.microbatches, product);
  }
  std::string problem;
  const BatchPlan plan = split(given, replicas, replicas_text, problem);
  if (problem.empty()) return plan;
  if (product > 0) {
    // The suggestions ignore the given batch, since it follows from microbatch and microbatches.
    Given two = given;
    two.batch = 0;
    const std::string more = given.batch > 0 ? "; leave batch out" : "";
    throw NumberError(problem + more, "microbatches",
                      suggested(two, &Given::microbatches, given.microbatches, replicas));
  }
  const long long batch = given.batch > 0 ? given.batch : plan.batch();
  throw NumberError(problem, "batch", suggested(given, &Given::batch, batch, replicas));
}

/// Adapts limits of tp to fp8, which needs a multiple of 16 columns on each rank. `limit.number`
/// counts groups of columns, such as heads, and tp must divide it. The columns of a group are a
/// multiple of `columns_of_each`. For a kv head this holds for its columns of QKV and for its
/// columns of the context. So each rank needs a multiple of `unit` = 16 / gcd(16, columns_of_each)
/// groups, and tp must divide limit.number / unit. If this is no whole number, the limit stays
/// unchanged, and scale() throws an error.
void align(std::vector<mesh::Constraint>& limits, const Model& model) {
  for (mesh::Constraint& limit : limits) {
    if (limit.axis != mesh::Axis::tp || limit.what == "vocabulary") continue;
    const bool heads = limit.what == "kv_heads";
    const int columns_of_each =
        heads ? std::gcd(model.heads / model.kv_heads, 2) * model.head_size : 1;
    const int unit = stack::fp8_multiple / std::gcd(stack::fp8_multiple, columns_of_each);
    if (unit == 1 || limit.number % unit != 0) continue;
    limit = {limit.axis, limit.number / unit, fmt::format("{} / {}", limit.what, unit)};
  }
}

/// Returns the factor by which the work per token grows if the sequence becomes cp times as long.
/// Attention multiplies each token with every other token twice (scores and context); all other
/// work per token stays the same.
double growth_with_sequence(const Model& model, int cp) {
  const double hidden = model.hidden, heads = static_cast<double>(model.heads) * model.head_size;
  const double kv = static_cast<double>(model.kv_heads) * model.head_size;
  const double projections = hidden * (2 * heads + 2 * kv);
  const double inner = (model.gated_mlp ? 3.0 : 2.0) * hidden * model.ffn;
  const double attention = 2.0 * model.sequence * heads;
  return (projections + inner + attention * cp) / (projections + inner + attention);
}

// The functions below make a twin, the small version of a request for verification.

constexpr long long most_chunks = 4;  // largest option `chunks` of a twin

/// Returns a short sequence length for the twin (the small request for verification). It has at
/// least two positions for each part into which cp, sequence parallelism and chunks cut the
/// sequence. The positions that a GEMM multiplies (with option `ring` the positions of one tp rank,
/// else of one chunk) are a multiple of `unit`.
int small_sequence(const Request& request, int unit) {
  const stack::TrainingOptions options = stack::options_of(request);
  const mesh::Shape& mesh = request.mesh;
  const int chunks = mesh.tp > 1 ? static_cast<int>(std::min(options.chunks, most_chunks)) : 1;
  const int parts = mesh.cp * (options.sequence_parallel ? mesh.tp : 1) * chunks;
  const int least = std::max(std::min(request.model.sequence, 8), parts > 1 ? 2 * parts : 1);
  const int products = mesh.cp * (options.ring ? mesh.tp : chunks);
  const int multiple = std::lcm(parts, unit * products);
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): all factors are 1 or more
  return (least + multiple - 1) / multiple * multiple;
}

/// Returns a small model for the twin (the small request for verification). Its widths are small
/// multiples of tp, and a stage has at most two layers. In fp8 all extents of GEMMs are multiples
/// of 16, even if a rank has a single head.
Model small_model(const Request& request) {
  const Model& real = request.model;
  const mesh::Shape& mesh = request.mesh;
  const bool fp8 = stack::types_of(request.precision).casts_operands();
  Model model = real;
  const auto width = [&](int least) {  // rounds up to a multiple of 16 columns a rank
    const int unit = 16 * mesh.tp;
    return (least + unit - 1) / unit * unit;
  };
  model.head_size = fp8 ? stack::fp8_multiple : std::min(real.head_size, 8);
  model.kv_heads = std::min(real.kv_heads, 2 * mesh.tp);
  model.heads = model.kv_heads * std::min(2, real.heads / real.kv_heads);
  model.hidden = width(32);
  model.ffn = width(64);
  model.vocabulary = width(32);
  model.sequence = small_sequence(request, fp8 ? stack::fp8_multiple : 1);
  model.layers = stack::small_layers(request);
  return model;
}

std::vector<stack::Parameter> parameters_of_last_stage(const Request& request) {
  return stack::parameters_of({request, {.pp = request.mesh.pp - 1}});
}

/// Returns a bucket size with which the small model has `wanted` buckets, or the nearest possible
/// number of them. A tensor is never split over buckets.
std::uint64_t small_bucket(const Request& small, std::size_t wanted) {
  const auto element = stack::state_plan_of(small).element;
  const std::vector<stack::Parameter> parameters = parameters_of_last_stage(small);
  std::pair<std::size_t, std::uint64_t> best{std::numeric_limits<std::size_t>::max(), 0};
  // The division into buckets changes only at sums of sizes of consecutive tensors, so no other
  // bucket sizes are tried.
  for (std::size_t first = 0; first < parameters.size(); ++first) {
    for (std::size_t last = first; last < parameters.size(); ++last) {
      const std::uint64_t size =
          (parameters[last].offset + parameters[last].count() - parameters[first].offset) * element;
      const std::size_t count = stack::buckets_of(parameters, size, element).size();
      const std::size_t distance = count > wanted ? count - wanted : wanted - count;
      if (distance < best.first) best = {distance, size};
    }
  }
  return best.second;
}

/// Returns the number of experts of the twin (the small request for verification): two on each
/// rank, or more if a token needs more (topk), but at most as many as the request has.
long long small_experts(const stack::TrainingOptions& options, int ep) {
  const long long needed = (1LL * options.topk + ep - 1) / ep;
  return ep * std::min(options.experts / ep, std::max(2LL, needed));
}

/// Adapts top-k compression of gradients to the twin (the small request for verification): a block
/// gets at most 100 elements. All elements of a block are sent, so that the twin has the same
/// result as a single rank.
void shrink_compression(const stack::TrainingOptions& options, Request& twin) {
  if (options.compression != stack::Compression::topk) return;
  constexpr long long small_block = 100;  // seldom divides a bucket, so last blocks are shorter
  twin.options["compression_block"] =
      std::to_string(std::min(options.compression_block, small_block));
  twin.options["compression_ratio"] = "100";
}

}  // namespace

program::ProgramSet build(const Request& request) {
  const mesh::AxisSet axes = stack::program_axes(request);
  const std::vector<int> replicas = stack::replica_programs(request);
  const auto first_with_program_of = [&](int rank) {
    mesh::Coordinates at = mesh::coordinates(request.mesh, rank);
    for (const mesh::Axis axis : mesh::all_axes) {
      if (!axes.contains(axis)) at[axis] = 0;
    }
    at.dp = replicas[static_cast<std::size_t>(at.dp)];
    return mesh::rank_at(request.mesh, at);
  };
  return shared_programs(request.mesh, first_with_program_of, [&](int rank) {
    return stack::build_stage(request, mesh::coordinates(request.mesh, rank));
  });
}

std::vector<int> expert_places(const Request& request) {
  const mesh::Shape& mesh = request.mesh;
  std::vector<int> places(static_cast<std::size_t>(mesh.size()));
  std::iota(places.begin(), places.end(), 0);
  const auto placement =
      stack::option_of(request, "expert_placement", &stack::TrainingOptions::expert_placement);
  if (mesh.ep == 1 || placement == stack::ExpertPlacement::packed) return places;
  for (int& rank : places) {
    const mesh::Coordinates at = mesh::coordinates(mesh, rank);
    rank = at.tp + mesh.tp * (at.cp + mesh.cp * (at.dp + mesh.dp * (at.ep + mesh.ep * at.pp)));
  }
  return places;
}

std::string expert_note(const Request& request) {
  const auto experts = stack::option_of(request, "experts", &stack::TrainingOptions::experts);
  if (experts == 0) return {};
  const stack::RouteStats stats = stack::route_stats(request);
  const auto percent_of = [](std::uint64_t part, std::uint64_t whole) {
    return 100.0 * static_cast<double>(part) /
           static_cast<double>(std::max<std::uint64_t>(whole, 1));
  };
  return fmt::format(
      "{} experts over ep={}: {:.1f}% of routed tokens dropped, {:.1f}% more rows by padding, the "
      "busiest rank of a layer has {:.2f} times the mean",
      experts, request.mesh.ep, percent_of(stats.dropped, stats.routed),
      percent_of(stats.padded, stats.routed - stats.dropped), stats.imbalance);
}

std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling) {
  using mesh::Axis;
  const stack::TrainingOptions options = stack::options_of(base);
  const Model& model = base.model;
  // Under weak scaling all widths but the hidden size grow with tp, the layers with pp, the
  // sequence with cp and the experts with ep, so these axes can always divide them.
  const bool is_strong = scaling == Scaling::strong;
  std::vector<mesh::Constraint> result;
  if (is_strong) {
    result = {{Axis::tp, model.kv_heads, "kv_heads"}, {Axis::tp, model.ffn, "ffn"}};
    std::ranges::copy(stack::pipeline_limits(base), std::back_inserter(result));
  }
  if (options.tp_output == stack::TpOutput::gather) {
    result.push_back({Axis::tp, model.hidden, "hidden"});
  }
  if (is_strong && options.vocabulary) {
    result.push_back({Axis::tp, model.vocabulary, "vocabulary"});
  }
  if (stack::types_of(base.precision).casts_operands()) align(result, model);
  if (is_strong) result.push_back({Axis::cp, model.sequence, "sequence"});
  if (options.sequence_parallel) result.push_back({Axis::tp, model.sequence, "sequence"});
  if (is_strong && options.experts > 0) {
    result.push_back({Axis::ep, static_cast<int>(options.experts), "experts"});
  }
  return result;
}

Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling) {
  Request result = base;
  result.mesh = mesh;
  const stack::TrainingOptions options = stack::options_of(base);
  // A mesh with ep but with neither experts nor sharded states is an error with any batch. So this
  // is checked first: splitting the batch over ep might report a problem of the batch instead.
  if (options.experts == 0 && mesh.ep > 1) stack::require_experts(result);
  BatchPlan plan;
  if (scaling == Scaling::weak) {
    plan = batch_plan(base, 1, "dp");
    Model& model = result.model;
    model.heads *= mesh.tp;
    model.kv_heads *= mesh.tp;
    model.ffn *= mesh.tp;
    model.vocabulary *= mesh.tp;
    model.layers *= mesh.pp;
    result.growth = mesh.tp * mesh.pp * growth_with_sequence(base.model, mesh.cp);
    model.sequence *= mesh.cp;
    if (options.experts > 0) {
      result.options["experts"] = std::to_string(options.experts * mesh.ep);
    }
  } else {
    plan = batch_plan(base, 1LL * mesh.dp * mesh.ep, mesh.ep > 1 ? "dp x ep" : "dp");
  }
  const long long stage_layers = std::max(1, result.model.layers / mesh.pp);
  if (plan.microbatches > most_layer_passes / stage_layers) {
    throw usage_error(
        "microbatches={} x {} layers a stage makes a program of more than {} layer passes; use "
        "microbatches={} or fewer (a larger microbatch, or a smaller batch)",
        plan.microbatches, stage_layers, most_layer_passes, most_layer_passes / stage_layers);
  }
  result.options["batch"] = std::to_string(plan.batch() * mesh.dp * mesh.ep);
  result.options["microbatch"] = std::to_string(plan.microbatch);
  result.options["microbatches"] = std::to_string(plan.microbatches);
  // The strategy funnel overlaps nothing, so `overlap` is off unless the user has set it.
  if (options.strategy == stack::Strategy::funnel) result.options.try_emplace("overlap", "off");
  stack::require_pipeline(result);
  stack::require_data(result);
  if (stack::types_of(base.precision).casts_operands()) {
    stack::require_fp8_extents({result, {.pp = mesh.pp - 1}});
  }
  stack::require_tensor(result);
  stack::require_states(result);
  stack::require_experts(result);
  return result;
}

double work_per_step(const Request& request) {
  return static_cast<double>(stack::options_of(request).batch) * request.model.sequence *
         request.growth;
}

mesh::Request balanced_mesh(int ranks) {
  constexpr std::array turn{mesh::Axis::dp, mesh::Axis::tp, mesh::Axis::pp};
  mesh::Request result{{mesh::Axis::dp, 1}, {mesh::Axis::tp, 1}, {mesh::Axis::pp, 1}};
  for (std::size_t next = 0; ranks % 2 == 0; ++next, ranks /= 2) {
    result[turn[next % turn.size()]] *= 2;
  }
  result[mesh::Axis::dp] *= ranks;
  return result;
}

Request twin(const Request& request) {
  const stack::TrainingOptions options = stack::options_of(request);
  Request small = request;
  small.model = small_model(request);
  small.keep = Keep::observables;
  // The interleaved schedule needs a multiple of pp microbatches.
  const bool in_turns = options.schedule == stack::Schedule::interleaved;
  const long long some = 2LL * request.mesh.pp + (in_turns && request.mesh.pp > 1 ? 0 : 1);
  const long long microbatches = std::max(2LL, std::min(options.microbatches, some));
  const long long microbatch = std::min(options.microbatch, 2LL);
  small.options["microbatch"] = std::to_string(microbatch);
  small.options["microbatches"] = std::to_string(microbatches);
  small.options["batch"] =
      std::to_string(microbatch * microbatches * request.mesh.dp * request.mesh.ep);
  if (options.experts > 0) {
    small.options["experts"] = std::to_string(small_experts(options, request.mesh.ep));
  }
  small.options["stage_layers"] = stack::small_stage_layers(request);
  small.options["chunks"] = std::to_string(std::min(options.chunks, most_chunks));
  const stack::StatePlan plan = stack::state_plan_of(request);
  const std::size_t buckets =
      stack::buckets_of(parameters_of_last_stage(request), plan.bucket_bytes, plan.element).size();
  for (const char* key : {"reduce_bucket", "gather_bucket"}) small.options.erase(key);
  small.options["bucket"] = std::to_string(small_bucket(small, std::max<std::size_t>(2, buckets)));
  shrink_compression(options, small);
  return small;
}

Request reference(const Request& twin) {
  Request one = twin;
  one.mesh = {};
  one.precision = Precision::f64;
  const long long microbatches = stack::options_of(twin).microbatches;
  for (const char* key :
       {"sequence_parallel", "chunks", "ring", "recompute", "zero", "prefetch", "reduces_in_flight",
        "offload", "offload_memory", "expert_batch", "expert_placement", "transport", "strategy",
        "partition", "grad_dtype", "compression"}) {
    one.options.erase(key);
  }
  one.speed_of_rank.clear();
  one.options["microbatches"] = std::to_string(microbatches * twin.mesh.dp * twin.mesh.ep);
  return one;
}

}  // namespace isoscale::workloads::hybrid
