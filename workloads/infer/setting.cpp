// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/infer/setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "workloads/bench/sizes.hpp"
#include "workloads/stack/geometry.hpp"

namespace isoscale::workloads::infer {
namespace {

constexpr std::uint64_t most_samples = 65536;
constexpr std::size_t most_batches = 64;
constexpr std::uint64_t most_rows = std::uint64_t{1} << 31U;  // of one GEMM
constexpr long long most_tokens = 1 << 24;

std::uint64_t parse_batch(std::string_view text) {
  std::uint64_t batch = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), batch);
  const bool is_whole = failure == std::errc{} && end == text.data() + text.size();
  if (is_whole && batch >= 1 && batch <= most_samples) return batch;
  throw base::UsageError(fmt::format(
      "batch: {} must be a whole number of samples from 1 to {}; a list is as batch=1,8,64",
      base::quoted(text), most_samples));
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::array table{
      OptionSpec{.key = "prompt",
                 .type = OptionType::integer,
                 .minimum = 1,
                 .maximum = most_tokens,
                 .help = "tokens of each prompt (default: the model's sequence)"},
      OptionSpec{.key = "output",
                 .type = OptionType::integer,
                 .default_value = "64",
                 .minimum = 1,
                 .maximum = most_tokens,
                 .help = "tokens generated for each prompt; the time per token is measured in the "
                         "middle of them"},
      OptionSpec{.key = "batch",
                 .type = OptionType::text,
                 .default_value = "1,2,4,8,16,32",
                 .help = "samples that each dp replica answers at once; a list, measured one after "
                         "the other"},
      OptionSpec{.key = "vocabulary",
                 .default_value = "on",
                 .choices = {"on", "off"},
                 .help = "the output projection on the last stage, of each sample's newest token"},
  };
  return table;
}

Setting setting_of(const Request& request) {
  const OptionReader options{option_table(), request.options};
  Setting setting{.prompt = options.has("prompt")
                                ? static_cast<std::uint64_t>(options.integer("prompt"))
                                : static_cast<std::uint64_t>(request.model.sequence),
                  .output = static_cast<std::uint64_t>(options.integer("output"))};
  std::set<std::uint64_t> batches;
  for (const std::string& part : parse_list("batch", options.text("batch"))) {
    batches.insert(parse_batch(part));
  }
  if (batches.size() > most_batches) {
    throw base::UsageError(fmt::format("batch: a list has at most {} sizes, this one has {}",
                                       most_batches, batches.size()));
  }
  setting.batches.assign(batches.begin(), batches.end());
  return setting;
}

Window window_of(const Setting& setting) {
  const std::uint64_t tokens = std::min(setting.output, most_decoded);
  return {.position = setting.prompt + (setting.output - tokens) / 2, .tokens = tokens};
}

std::uint64_t groups_of(std::uint64_t batch, std::uint64_t stages) {
  std::uint64_t groups = std::min(batch, stages);
  while (batch % groups != 0) --groups;
  return groups;
}

units::Bytes cache_of(const Request& request, std::uint64_t batch) {
  const Model& model = request.model;
  const auto share = [](int whole, int parts) { return static_cast<std::uint64_t>(whole / parts); };
  const std::uint64_t elements =
      2 * share(model.layers, request.mesh.pp) * batch * share(model.kv_heads, request.mesh.tp) *
      setting_of(request).positions() * static_cast<std::uint64_t>(model.head_size);
  return units::Bytes{elements * program::element_size(stack::types_of(request.precision).compute)};
}

std::vector<mesh::Constraint> limits(const Request& base, Scaling scaling) {
  if (scaling == Scaling::weak) return {};  // all that is split grows
  const Model& model = base.model;
  std::vector<mesh::Constraint> result{{mesh::Axis::tp, model.kv_heads, "kv_heads"},
                                       {mesh::Axis::tp, model.ffn, "ffn"},
                                       {mesh::Axis::pp, model.layers, "layers"}};
  if (OptionReader{option_table(), base.options}.is("vocabulary", "on")) {
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
    throw base::UsageError(fmt::format(
        "batch={} x prompt={}: {} tokens at once, and a GEMM has fewer than {} rows; use a batch "
        "of at most {}",
        largest, setting.prompt, samples * setting.prompt, most_rows,
        std::max<std::uint64_t>(1, (most_rows - 1) / setting.prompt)));
  }
  result.options["prompt"] = std::to_string(setting.prompt);
  return result;
}

}  // namespace isoscale::workloads::infer
