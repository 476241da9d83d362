// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every mesh answers what plain loops answer.
#include <fmt/format.h>

#include <gtest/gtest.h>

#include <string>

#include "program/check.hpp"
#include "tests/mpi/infer_reference.hpp"
#include "tests/mpi/twin_cases.hpp"
#include "workloads/infer/infer.hpp"
#include "workloads/registry.hpp"

namespace isoscale::runner {
namespace {

using program::Precision;
using workloads::Request;

/// Grouped query heads; a plain or a gated MLP.
workloads::Model model(bool gated) {
  return {.name = "small",
          .source = "test",
          .hidden = 12,
          .ffn = 16,
          .heads = 16,
          .kv_heads = 8,
          .head_size = 4,
          .gated_mlp = gated,
          .layers = 8,
          .sequence = 5,
          .vocabulary = 24};
}

Request request_of(const mesh::Shape& mesh, bool gated, int batch, bool has_vocabulary) {
  Request base{.model = model(gated), .precision = Precision::f64, .seed = 7};
  base.options = {{"batch", std::to_string(batch)},
                  {"output", "3"},
                  {"vocabulary", has_vocabulary ? "on" : "off"}};
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
      const measure::Tensors expected = InferReference{
          {.model = request.model,
           .seed = request.seed,
           .prompt = 5,
           .output = 3,
           .samples = static_cast<std::size_t>(batch * mesh.dp),
           .has_vocabulary =
               has_vocabulary}}.tensors();
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
  InferCase asked{.model = request.model,
                  .seed = request.seed,
                  .prompt = 5,
                  .output = 3,
                  .samples = 2,
                  .has_vocabulary = true};
  measure::Tensors expected = InferReference{asked}.tensors();
  // The tokens of a model whose prompts were others: a decode that does not read the cache.
  asked.seed = request.seed + 1;
  expected["decode.logits"] = InferReference{asked}.tensors()["decode.logits"];
  const measure::Difference worst =
      difference(ranks, request, expected, executor::HostStreams::folded);
  EXPECT_EQ(worst.name, "decode.logits");
  EXPECT_GT(worst.relative, 0.01);
}

TEST(Infer, TwinsOfRealModelsPass) {
  const Ranks ranks;
  const workloads::Workload& infer = workloads::find_workload("infer");
  for (const mesh::Shape& mesh : meshes_of(ranks.world.size())) {
    for (const char* name : {"tiny", "llama3-8b"}) {
      for (const Precision precision : {Precision::f64, Precision::f32}) {
        Request base{.model = workloads::load_model(name), .precision = precision};
        if (mesh::violation(mesh, infer.limits(base, workloads::Scaling::strong))) continue;
        const Request request = infer.scale(base, mesh, workloads::Scaling::strong);
        const measure::Verdict verdict =
            measure::verify_twin(infer, request, *ranks.folded, ranks.world);
        EXPECT_TRUE(verdict.ok) << name << " " << mesh::to_string(mesh) << ": " << verdict.detail;
        if (precision == Precision::f64) {
          EXPECT_LT(verdict.difference.value_or(1), 1e-12) << mesh::to_string(mesh);
        }
      }
    }
  }
}

TEST(Infer, NarrowTypesPassWhereTheHostEmulatesThem) {
  const Ranks ranks;
  const workloads::Workload& infer = workloads::find_workload("infer");
  for (const mesh::Shape& mesh : meshes_of(ranks.world.size())) {
    for (const Precision precision : {Precision::tf32, Precision::f16, Precision::bf16}) {
      const Request base{.model = workloads::load_model("tiny"), .precision = precision};
      const Request request = infer.scale(base, mesh, workloads::Scaling::strong);
      const measure::Verdict verdict =
          measure::verify_twin(infer, request, *ranks.emulating, ranks.world);
      EXPECT_TRUE(verdict.ok) << program::name(precision) << " " << mesh::to_string(mesh) << ": "
                              << verdict.detail;
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
