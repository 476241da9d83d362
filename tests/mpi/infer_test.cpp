// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every mesh answers what plain loops in f64 do, which know nothing of the programs.

#include "workloads/infer/infer.hpp"
#include "program/check_races_and_matching.hpp"
#include "program/fill_and_checksum.hpp"
#include "tests/mpi/twin_cases.hpp"
#include "workloads/stack/training_state_buffers.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;
using workloads::Request;

class InferReference {
 public:
  using Row = std::vector<double>;

  /// `samples` are those of all replicas.
  InferReference(const Request& request, std::size_t samples, bool has_vocabulary)
      : m_(request.model),
        seed_(request.seed),
        samples_(samples),
        has_vocabulary_(has_vocabulary) {}

  /// Every tensor by the name of its observable.
  measure::Tensors tensors() {
    fill_cache();
    const measure::Tensors before = cache_;
    measure::Tensors result;
    // In the second step, the last block of the cache has tokens of the first.
    for (int step = 0; step < measure::twin_steps; ++step) result = answers();
    for (const auto& [name, after] : cache_) {
      result[name] = after;
      Row& change = result[name + std::string{measure::change_suffix}];
      for (std::size_t i = 0; i < after.size(); ++i)
        change.push_back(after[i] - before.at(name)[i]);
    }
    return result;
  }

 private:
  /// The outputs of a prefill and of the decode that follows it.
  measure::Tensors answers() {
    const std::size_t h = size(m_.hidden);
    measure::Tensors result;
    const std::string what = has_vocabulary_ ? ".logits" : ".output";
    for (std::size_t sample = 0; sample < samples_; ++sample) {
      std::vector<Row> prompt;
      for (std::size_t p = 0; p < prompt_tokens; ++p) {
        prompt.push_back(values("prompt", (sample * prompt_tokens + p) * h, h, 1));
      }
      const std::vector<Row> out = forward(sample, 0, prompt);
      if (has_vocabulary_) {
        append(result["prefill.logits"], project(out.back()));
      } else {
        for (const Row& row : out) append(result["prefill.output"], row);
      }
      for (std::size_t t = 0; t < output_tokens; ++t) {
        const Row token = values("token", (sample * output_tokens + t) * h, h, 1);
        const Row last = forward(sample, prompt_tokens + t, {token}).front();
        append(result["decode" + what], has_vocabulary_ ? project(last) : last);
      }
    }
    return result;
  }

  static std::size_t size(int number) { return static_cast<std::size_t>(number); }
  static void append(Row& to, const Row& more) { to.insert(to.end(), more.begin(), more.end()); }

  /// `count` elements of a tensor from `first` on, of deviation 1 / sqrt(fan in).
  [[nodiscard]] Row values(const std::string& name, std::size_t first, std::size_t count,
                           int fan_in) const {
    const program::Fill fill =
        workloads::stack::random_fill({}, {}, workloads::stack::fill_key(seed_, name),
                                      1 / std::sqrt(static_cast<double>(fan_in)));
    const program::FillGrid grid{.origin = program::fill_origin(fill.key), .range = fill.range};
    const double scale = program::power_of_two(fill.exponent);
    Row row;
    for (std::size_t i = 0; i < count; ++i) {
      row.push_back(program::fill_value<double>(program::fill_integer(grid, first + i), scale));
    }
    return row;
  }

  /// x [inputs] * W [inputs x outputs]
  [[nodiscard]] Row times(const Row& x, const std::string& name, std::size_t outputs) {
    const auto [found, is_new] = weights_.try_emplace(name);
    const Row& weights = found->second;
    if (is_new) found->second = values(name, 0, x.size() * outputs, static_cast<int>(x.size()));
    Row y(outputs, 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      for (std::size_t j = 0; j < outputs; ++j) y[j] += x[i] * weights[i * outputs + j];
    }
    return y;
  }

  [[nodiscard]] Row project(const Row& x) { return times(x, "vocabulary", size(m_.vocabulary)); }

  /// Both are whole blocks of 16 tokens.
  [[nodiscard]] static std::size_t capacity() { return 32; }
  [[nodiscard]] static std::size_t decoded_length(std::size_t position) {
    return position < 16 ? 16 : 32;
  }
  [[nodiscard]] std::size_t cell(std::size_t sample, std::size_t head, std::size_t position) const {
    return ((sample * size(m_.kv_heads) + head) * capacity() + position) * size(m_.head_size);
  }

  void fill_cache() {
    const std::size_t count = cell(samples_, 0, 0);
    for (int layer = 0; layer < m_.layers; ++layer) {
      for (const char* what : {".keys", ".values"}) {
        const std::string name = "layer" + std::to_string(layer) + what;
        cache_[name] = values(name, 0, count, 1);
      }
    }
  }

  /// Tokens of one sample through all layers; they attend to all before them and to each other.
  std::vector<Row> forward(std::size_t sample, std::size_t position, std::vector<Row> x) {
    const double gain = 0.5 / m_.layers;
    for (int layer = 0; layer < m_.layers; ++layer) {
      const std::string name = "layer" + std::to_string(layer);
      const std::vector<Row> context = attention(name, sample, position, x);
      for (std::size_t p = 0; p < x.size(); ++p) {
        add(x[p], gain, times(context[p], name + ".projection", size(m_.hidden)));
        add(x[p], gain, times(inner(name, x[p]), name + ".down", size(m_.hidden)));
      }
    }
    return x;
  }

  static void add(Row& to, double gain, const Row& more) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += gain * more[i];
  }

  [[nodiscard]] Row inner(const std::string& name, const Row& x) {
    const std::size_t f = size(m_.ffn);
    Row up = times(x, name + ".up", (m_.gated_mlp ? 2 : 1) * f);
    if (!m_.gated_mlp) return up;
    Row sum(f);
    for (std::size_t i = 0; i < f; ++i) sum[i] = up[i] + up[f + i];
    return sum;
  }

  std::vector<Row> attention(const std::string& name, std::size_t sample, std::size_t position,
                             const std::vector<Row>& x) {
    const std::size_t d = size(m_.head_size), heads = size(m_.kv_heads);
    const std::size_t grouped = size(m_.heads / m_.kv_heads), columns = (grouped + 2) * d;
    Row& keys = cache_.at(name + ".keys");
    Row& stored = cache_.at(name + ".values");
    std::vector<Row> qkv;
    for (std::size_t p = 0; p < x.size(); ++p) {
      qkv.push_back(times(x[p], name + ".qkv", heads * columns));
      for (std::size_t head = 0; head < heads; ++head) {
        for (std::size_t k = 0; k < d; ++k) {
          const std::size_t at = cell(sample, head, position + p) + k;
          keys[at] = qkv[p][head * columns + grouped * d + k];
          stored[at] = qkv[p][head * columns + (grouped + 1) * d + k];
        }
      }
    }
    const std::size_t length = x.size() == 1 ? decoded_length(position) : x.size();
    std::vector<Row> context(x.size(), Row(heads * grouped * d, 0.0));
    for (std::size_t p = 0; p < x.size(); ++p) {
      for (std::size_t query = 0; query < heads * grouped; ++query) {
        const std::size_t head = query / grouped;
        const double* const q = &qkv[p][head * columns + query % grouped * d];
        for (std::size_t other = 0; other < length; ++other) {
          const std::size_t at = cell(sample, head, other);
          double score = 0;
          for (std::size_t k = 0; k < d; ++k) score += q[k] * keys[at + k];
          score /= std::sqrt(static_cast<double>(d * length));
          for (std::size_t k = 0; k < d; ++k) context[p][query * d + k] += score * stored[at + k];
        }
      }
    }
    return context;
  }

  /// Tokens; all of the output are decoded.
  static constexpr std::size_t prompt_tokens = 15, output_tokens = 3;
  workloads::Model m_;
  std::uint64_t seed_;
  std::size_t samples_;
  bool has_vocabulary_;
  measure::Tensors cache_;
  std::map<std::string, Row> weights_;  ///< drawn once, for all tokens
};

/// Grouped query heads; a plain or a gated MLP.
Request request_of(const mesh::Shape& mesh, bool gated, int batch, bool has_vocabulary) {
  Request base{.model = workloads::test_model(
                   std::string{"hidden=12 ffn=16 heads=16 kv_heads=8 head_size=4 layers=8 "
                               "sequence=15 vocabulary=24"} +
                   (gated ? " gated=1" : "")),
               .precision = Precision::f64,
               .seed = 7};
  base.options = workloads::options_of(
      fmt::format("batch={} output=3 vocabulary={}", batch, has_vocabulary ? "on" : "off"));
  Request request = workloads::infer::scale(base, mesh, workloads::Scaling::strong);
  request.keep = workloads::Keep::observables;
  return request;
}

/// The worst difference of this rank's tensors from the loops'.
measure::Difference difference(const Ranks& ranks, const Request& request,
                               const measure::Tensors& expected, executor::HostStreams streams) {
  const program::ProgramSet set = workloads::infer::build(request);
  program::check(set);
  const auto session = ranks.executor(streams).prepare(set, ranks.world);
  const program::RankProgram& program = set.of(ranks.world.rank());
  const measure::Initial initial = measure::play_twin(*session, program);
  return measure::compare(*session, program, mesh::coordinates(set.mesh, ranks.world.rank()),
                          initial, expected);
}

TEST(Infer, EveryMeshAnswersWhatLoopsAnswer) {
  const Ranks ranks;
  int cases = 0;
  for (const mesh::Shape& mesh : meshes_of(ranks.world.size())) {
    for (const int batch : {1, 4, 6}) {
      ++cases;
      const bool gated = cases % 2 == 0, has_vocabulary = cases % 3 != 0;
      const Request request = request_of(mesh, gated, batch, has_vocabulary);
      const auto samples = static_cast<std::size_t>(batch * mesh.dp);
      const measure::Tensors expected = InferReference{request, samples, has_vocabulary}.tensors();
      const auto streams =
          cases % 4 == 0 ? executor::HostStreams::threads : executor::HostStreams::folded;
      const measure::Difference worst = difference(ranks, request, expected, streams);
      EXPECT_LT(worst.relative, 1e-12)
          << mesh::to_string(mesh) << " batch " << batch << ": " << worst.name;
      EXPECT_GT(worst.compared, 1000U);
    }
  }
}

TEST(Infer, AWrongAnswerIsNoticed) {
  const Ranks ranks;
  const Request request = request_of({.tp = ranks.world.size()}, false, 2, true);
  measure::Tensors expected = InferReference{request, 2, true}.tensors();
  // The tokens of a model whose prompts were others: a decode that does not read the cache.
  Request other = request;
  other.seed += 1;
  expected["decode.logits"] = InferReference{other, 2, true}.tensors()["decode.logits"];
  const measure::Difference worst =
      difference(ranks, request, expected, executor::HostStreams::folded);
  EXPECT_EQ(worst.name, "decode.logits");
  EXPECT_GT(worst.relative, 0.01);
}

TEST(Infer, TwinsOfRealModelsPassAndNarrowTypesWhereTheHostEmulatesThem) {
  const Ranks ranks;
  const workloads::Workload& infer = workloads::find_workload("infer");
  const std::vector<Precision> wide{Precision::f64, Precision::f32};
  std::vector<Precision> all = wide;
  all.insert(all.end(), {Precision::tf32, Precision::f16, Precision::bf16});
  for (const mesh::Shape& mesh : meshes_of(ranks.world.size())) {
    for (const auto& [name, precisions] : {std::pair{"tiny", all}, std::pair{"llama3-8b", wide}}) {
      for (const Precision precision : precisions) {
        const Request base{.model = workloads::load_model(name), .precision = precision};
        if (mesh::violation(mesh, infer.limits(base, workloads::Scaling::strong))) continue;
        const Request request = infer.scale(base, mesh, workloads::Scaling::strong);
        const bool is_wide = precision == Precision::f64 || precision == Precision::f32;
        const measure::Verdict verdict = measure::verify_twin(
            infer, request, is_wide ? *ranks.folded : *ranks.emulating, ranks.world);
        SCOPED_TRACE(
            fmt::format("{} {} {}", name, mesh::to_string(mesh), program::name(precision)));
        EXPECT_TRUE(verdict.ok) << verdict.detail;
        if (precision == Precision::f64) {
          EXPECT_LT(verdict.difference.value_or(1), 1e-12);
        }
      }
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
