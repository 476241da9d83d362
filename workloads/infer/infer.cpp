// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/infer/infer.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "program/builder.hpp"
#include "program/outline.hpp"
#include "workloads/infer/replica.hpp"
#include "workloads/stack/partitioning.hpp"

namespace isoscale::workloads::infer {

namespace {

constexpr std::uint64_t most_samples = 65536;  // largest batch size
constexpr std::size_t most_batches = 64;       // longest list of batch sizes

constexpr std::uint64_t most_rows = std::uint64_t{1} << 31U;  // a GEMM must have fewer rows

constexpr long long most_tokens = 1 << 24;

/// Reads a list of batch sizes. Returns them ascending, each once. Throws base::UsageError for any
/// other text, for a size above `most_samples`, and for a list of more than `most_batches`.
std::vector<std::uint64_t> parse_batches(std::string_view key, std::string_view text) {
  std::set<std::uint64_t> batches;
  for (const std::string& part : parse_list(key, text)) {
    const auto batch = base::number_in<std::uint64_t>(part);
    if (!batch || *batch < 1 || *batch > most_samples) {
      throw usage_error(
          "{}: {} must be a whole number of samples from 1 to {}; a list is as batch=1,8,64", key,
          base::quoted(part), most_samples);
    }
    batches.insert(*batch);
  }
  if (batches.size() > most_batches) {
    throw usage_error("{}: a list has at most {} sizes, this one has {}", key, most_batches,
                      batches.size());
  }
  return {batches.begin(), batches.end()};
}

/// Returns a small model for the twin (the small version of a request for verification). Its heads,
/// FFN width and vocabulary are small multiples of tp, unless the real ones are smaller. Its hidden
/// size is at most 48, and a stage has at most two layers.
Model small_model(const Model& real, const mesh::Shape& mesh) {
  Model model = real;
  model.head_size = std::min(real.head_size, 8);
  model.kv_heads = std::min(real.kv_heads, 2 * mesh.tp);
  model.heads = model.kv_heads * std::min(2, real.heads / real.kv_heads);
  model.hidden = std::min(real.hidden, 48);
  model.ffn = std::min(real.ffn, 64 * mesh.tp);
  model.vocabulary = std::min(real.vocabulary, 32 * mesh.tp);
  model.layers = mesh.pp * std::min(2, real.layers / mesh.pp);
  return model;
}

constexpr std::size_t prefill_step = 0, decode_step = 1;

/// The number of passes that are timed together (Case::most_times). It is so large that the
/// beginning and the end of a measurement take little of its time. If there are several pipeline
/// stages, a prefill is timed in single passes instead.
constexpr std::uint64_t passes = 16;

Room room_of(const Setting& setting, std::uint64_t batch) {
  return {.samples = batch,
          .prompt = setting.prompt,
          .positions = setting.positions(),
          .decoded = window_of(setting).tokens};
}

double flop_of(const program::ProgramSet& set, program::Section section) {
  std::vector<double> of_program;
  for (const program::RankProgram& program : set.programs) {
    double sum = 0;
    for (const program::OutlineOp& op : program::outline(program, section, set.mesh).ops) {
      sum += op.flop;
    }
    of_program.push_back(sum);
  }
  double sum = 0;
  for (const std::uint32_t program : set.program_of_rank) sum += of_program[program];
  return sum;
}

/// Returns the bytes of keys and values on one rank: 2 x (layers / pp) x batch x (kv_heads / tp) x
/// whole_blocks(positions) x head_size elements.
units::Bytes cache_of(const Request& request, std::uint64_t batch) {
  const Model& model = request.model;
  const auto share = [](int whole, int parts) { return static_cast<std::uint64_t>(whole / parts); };
  const std::uint64_t elements =
      2 * share(model.layers, request.mesh.pp) * batch * share(model.kv_heads, request.mesh.tp) *
      whole_blocks(setting_of(request).positions()) * static_cast<std::uint64_t>(model.head_size);
  return units::Bytes{elements * program::element_size(stack::types_of(request.precision).compute)};
}

RowSpec row_of(const Request& request, const Setting& setting, std::uint64_t batch) {
  RowSpec row;
  row.text = {{"op", "infer"}, {"dtype", std::string{name(request.precision)}}};
  row.number = {{"batch", static_cast<double>(batch)},
                {"prompt", static_cast<double>(setting.prompt)},
                {"output", static_cast<double>(setting.output)},
                {"replicas", request.mesh.dp},
                {"groups", static_cast<double>(
                               groups_of(batch, static_cast<std::uint64_t>(request.mesh.pp)))},
                {"cache_bytes", static_cast<double>(cache_of(request, batch).value())}};
  return row;
}

Bench bench_of(const Request& request, int index) {
  const Setting setting = setting_of(request);
  const std::uint64_t batch = setting.batches.at(static_cast<std::size_t>(index));
  const Window window = window_of(setting);
  Bench bench;
  bench.set = by_stage(request, [&](const mesh::Coordinates& at) {
    program::Builder builder{request.mesh};
    Replica replica{builder, request, at, room_of(setting, batch)};
    builder.begin(program::step_section(prefill_step));
    replica.prefill(batch, setting.prompt);
    builder.begin(program::step_section(decode_step));
    replica.decode(batch, window.position, window.tokens);
    return builder.finish();
  });
  RowSpec prefill = row_of(request, setting, batch), decode = prefill;
  prefill.text["part"] = "prefill";
  prefill.number["flop"] = flop_of(bench.set, program::step_section(prefill_step));
  decode.text["part"] = "decode";
  decode.number["flop"] = flop_of(bench.set, program::step_section(decode_step));
  decode.number["position"] = static_cast<double>(window.position);
  decode.number["tokens"] = static_cast<double>(window.tokens);
  bench.rows = {std::move(prefill), std::move(decode)};
  // With several pipeline stages, consecutive prompts would overlap, so each prompt is timed alone.
  bench.cases = {{.section = program::step_section(prefill_step),
                  .most_times = request.mesh.pp > 1 ? 1 : passes,
                  .row_begin = 0,
                  .row_end = 1,
                  .calls_are_spans = CallsAreSpans::no,
                  .repeat = request.mesh.pp > 1 ? Repeat::never : Repeat::allowed,
                  .launch_cost = LaunchCost::included},
                 {.section = program::step_section(decode_step),
                  .calls = window.tokens,
                  .most_times = passes,
                  .row_begin = 1,
                  .row_end = 2,
                  .calls_are_spans = CallsAreSpans::no,
                  .launch_cost = LaunchCost::included}};
  return bench;
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::array table{
      option::integer<&Setting::prompt>("prompt", "", {1, most_tokens},
                                        "tokens of each prompt (default: the model's sequence)"),
      option::integer<&Setting::output>(
          "output", "64", {1, most_tokens},
          "tokens generated for each prompt; the time per token is measured in the middle of them"),
      option::parsed<&Setting::batches, parse_batches>(
          "batch", "1,2,4,8,16,32",
          "samples that each dp replica answers at once; a list, measured one after the other"),
      option::toggle<&Setting::vocabulary>(
          "vocabulary", "on",
          "the output projection on the last stage, of each sample's newest token"),
  };
  return table;
}

Setting setting_of(const Request& request) {
  auto setting = typed_options<Setting>(option_table(), request.options);
  if (setting.prompt == 0) setting.prompt = static_cast<std::uint64_t>(request.model.sequence);
  return setting;
}

Window window_of(const Setting& setting) {
  const std::uint64_t tokens = std::min(setting.output, most_decoded);
  return {.position = setting.prompt + (setting.output - tokens) / 2, .tokens = tokens};
}

std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling) {
  if (scaling == Scaling::weak) return {};  // everything that the mesh divides grows with it
  const Model& model = base.model;
  std::vector<mesh::Constraint> result{{mesh::Axis::tp, model.kv_heads, "kv_heads"},
                                       {mesh::Axis::tp, model.ffn, "ffn"},
                                       {mesh::Axis::pp, model.layers, "layers"}};
  if (setting_of(base).vocabulary) {
    result.push_back({mesh::Axis::tp, model.vocabulary, "vocabulary"});
  }
  return result;
}

Request scale(const Request& base, const mesh::Shape& mesh, Scaling scaling) {
  if (base.precision == Precision::fp8) {
    throw base::UsageError(
        "--dtype fp8: workload infer computes in f64, f32, tf32, f16 and bf16; GEMMs of a few rows "
        "have no extents that fp8 needs; use --dtype bf16");
  }
  Request result = base;
  result.mesh = mesh;
  if (scaling == Scaling::weak) {
    result.model.heads *= mesh.tp;
    result.model.kv_heads *= mesh.tp;
    result.model.ffn *= mesh.tp;
    result.model.vocabulary *= mesh.tp;
    result.model.layers *= mesh.pp;
    result.growth = mesh.tp * mesh.pp;
  }
  const Setting setting = setting_of(base);
  const std::uint64_t largest = setting.batches.back();
  const std::uint64_t samples = largest / groups_of(largest, static_cast<std::uint64_t>(mesh.pp));
  if (samples * setting.prompt >= most_rows) {
    throw usage_error(
        "batch={} x prompt={}: {} tokens at once, and a GEMM has fewer than {} rows; use a batch "
        "of at most {}",
        largest, setting.prompt, samples * setting.prompt, most_rows,
        std::max<std::uint64_t>(1, (most_rows - 1) / setting.prompt));
  }
  result.options["prompt"] = std::to_string(setting.prompt);
  return result;
}

Request twin(const Request& request) {
  const Setting setting = setting_of(request);
  const auto stages = static_cast<std::uint64_t>(request.mesh.pp);
  std::uint64_t groups = 0, samples = 0;  // groups of the twin; samples of a group
  for (const std::uint64_t batch : setting.batches) {
    if (groups_of(batch, stages) < groups) continue;
    groups = groups_of(batch, stages);
    samples = std::min<std::uint64_t>(2, batch / groups);
  }
  Request small = request;
  small.model = small_model(request.model, request.mesh);
  small.keep = Keep::observables;
  small.options["prompt"] = std::to_string(std::min<std::uint64_t>(setting.prompt, 14));
  small.options["output"] = std::to_string(std::min<std::uint64_t>(setting.output, 4));
  small.options["batch"] = std::to_string(groups * samples);
  return small;
}

Request reference(const Request& twin) {
  Request one = twin;
  one.mesh = {};
  one.precision = Precision::f64;
  const std::uint64_t batch = setting_of(twin).batches.back();
  one.options["batch"] = std::to_string(batch * static_cast<std::uint64_t>(twin.mesh.dp));
  return one;
}

program::ProgramSet build(const Request& request) {
  const Setting setting = setting_of(request);
  const std::uint64_t batch = setting.batches.back();
  return by_stage(request, [&](const mesh::Coordinates& at) {
    const Window window = window_of(setting);
    program::Builder builder{request.mesh};
    Replica replica{builder, request, at, room_of(setting, batch)};
    builder.begin(program::Section::step);
    replica.prefill(batch, setting.prompt);
    replica.decode(batch, setting.prompt, window.tokens);
    if (request.keep == Keep::observables) replica.observe_cache();
    return builder.finish();
  });
}

BenchHooks hooks() {
  return {.batches =
              [](const Request& request) {
                return static_cast<int>(setting_of(request).batches.size());
              },
          .build = bench_of,
          .uses_model = [](const Request&) { return true; }};
}

}  // namespace isoscale::workloads::infer
