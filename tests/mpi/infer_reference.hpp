// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "program/fill_and_checksum.hpp"
#include "runner/measure/twin_check.hpp"
#include "workloads/stack/parameters.hpp"

/// Inference as plain loops over samples, tokens, heads and columns, in f64, from the data that
/// Fill defines: nothing of the programs that are tested.
namespace isoscale::runner {

struct InferCase {
  workloads::Model model;
  std::uint64_t seed = 1;
  std::size_t prompt = 1, output = 1;  ///< tokens; all of the output are decoded
  std::size_t samples = 1;             ///< of all replicas
  bool has_vocabulary = true;
};

class InferReference {
 public:
  using Row = std::vector<double>;

  explicit InferReference(const InferCase& asked) : c_(asked), m_(asked.model) {}

  /// Every tensor by the name of its observable.
  measure::Tensors tensors() {
    fill_cache();
    const std::size_t h = size(m_.hidden);
    const measure::Tensors before = cache_;
    measure::Tensors result;
    const std::string what = c_.has_vocabulary ? ".logits" : ".output";
    for (std::size_t sample = 0; sample < c_.samples; ++sample) {
      std::vector<Row> prompt;
      for (std::size_t p = 0; p < c_.prompt; ++p) {
        prompt.push_back(values("prompt", (sample * c_.prompt + p) * h, h, 1));
      }
      const std::vector<Row> out = forward(sample, 0, prompt);
      if (c_.has_vocabulary) {
        append(result["prefill.logits"], project(out.back()));
      } else {
        for (const Row& row : out) append(result["prefill.output"], row);
      }
      for (std::size_t t = 0; t < c_.output; ++t) {
        const Row token = values("token", (sample * c_.output + t) * h, h, 1);
        const Row last = forward(sample, c_.prompt + t, {token}).front();
        append(result["decode" + what], c_.has_vocabulary ? project(last) : last);
      }
    }
    for (const auto& [name, after] : cache_) {
      result[name] = after;
      Row& change = result[name + std::string{measure::change_suffix}];
      for (std::size_t i = 0; i < after.size(); ++i)
        change.push_back(after[i] - before.at(name)[i]);
    }
    return result;
  }

 private:
  static std::size_t size(int number) { return static_cast<std::size_t>(number); }
  static void append(Row& to, const Row& more) { to.insert(to.end(), more.begin(), more.end()); }

  /// `count` elements of a tensor from `first` on, of deviation 1 / sqrt(fan in).
  [[nodiscard]] Row values(const std::string& name, std::size_t first, std::size_t count,
                           int fan_in) const {
    const program::Fill fill =
        workloads::stack::random_fill({}, {}, workloads::stack::fill_key(c_.seed, name),
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
  [[nodiscard]] Row times(const Row& x, const std::string& name, std::size_t outputs) const {
    Row y(outputs, 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Row weights = values(name, i * outputs, outputs, static_cast<int>(x.size()));
      for (std::size_t j = 0; j < outputs; ++j) y[j] += x[i] * weights[j];
    }
    return y;
  }

  [[nodiscard]] Row project(const Row& x) const {
    return times(x, "vocabulary", size(m_.vocabulary));
  }

  [[nodiscard]] std::size_t capacity() const { return c_.prompt + c_.output; }
  [[nodiscard]] std::size_t cell(std::size_t sample, std::size_t head, std::size_t position) const {
    return ((sample * size(m_.kv_heads) + head) * capacity() + position) * size(m_.head_size);
  }

  void fill_cache() {
    const std::size_t count = cell(c_.samples, 0, 0);
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

  [[nodiscard]] Row inner(const std::string& name, const Row& x) const {
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
    const std::size_t length = position + x.size();
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

  InferCase c_;
  workloads::Model m_;
  measure::Tensors cache_;
};

}  // namespace isoscale::runner
