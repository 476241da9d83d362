// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Programs of every precision: the same work, other operands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/error.hpp"
#include "program/check.hpp"
#include "program/facts.hpp"
#include "workloads/api/workload.hpp"

namespace isoscale::workloads {
namespace {

using program::Cast;
using program::DType;
using program::Gemm;
using program::Op;
using program::Role;
using ::testing::HasSubstr;

/// Divides by 16 in every extent, also over tp=2.
Request aligned(Precision precision, const Options& options = {}) {
  Request request{.model = {.name = "aligned",
                            .source = "test",
                            .hidden = 64,
                            .ffn = 96,
                            .heads = 8,
                            .kv_heads = 4,
                            .head_size = 16,
                            .gated_mlp = true,
                            .layers = 4,
                            .sequence = 16,
                            .vocabulary = 64},
                  .precision = precision,
                  .options = options};
  request.options.try_emplace("microbatch", "2");
  request.options.try_emplace("microbatches", "3");
  return request;
}

program::ProgramSet build(const Request& base, const mesh::Shape& mesh,
                          Scaling scaling = Scaling::weak) {
  const Workload& hybrid = find_workload("hybrid");
  return hybrid.build(hybrid.scale(base, mesh, scaling));
}

template <class Payload>
std::vector<std::pair<const Op*, const Payload*>> all_of(const program::RankProgram& program) {
  std::vector<std::pair<const Op*, const Payload*>> found;
  for (const Op& op : program.step().ops) {
    if (const auto* payload = std::get_if<Payload>(&op.payload)) found.emplace_back(&op, payload);
  }
  return found;
}

TEST(Precisions, AllDoTheSameWork) {
  for (const mesh::Shape& mesh : {mesh::Shape{}, mesh::Shape{.tp = 2, .dp = 2, .pp = 2}}) {
    for (const char* output : {"reduce", "gather"}) {
      const Options options{{"tp_output", output}, {"vocabulary", "on"}};
      const program::ProgramSet plain = build(aligned(Precision::f32, options), mesh);
      for (const Precision precision :
           {Precision::tf32, Precision::f16, Precision::bf16, Precision::fp8}) {
        const program::ProgramSet set = build(aligned(precision, options), mesh);
        EXPECT_NO_THROW(program::check(set)) << name(precision);
        for (std::size_t i = 0; i < set.programs.size(); ++i) {
          EXPECT_EQ(program::facts(set.programs[i], mesh).flop.value(),
                    program::facts(plain.programs[i], mesh).flop.value());
        }
      }
    }
  }
}

TEST(Precisions, Tf32IsAModeOfEveryGemm) {
  const program::ProgramSet set = build(aligned(Precision::tf32, {{"vocabulary", "on"}}), {});
  for (const auto& [op, gemm] : all_of<Gemm>(set.programs[0])) {
    EXPECT_EQ(gemm->mode, program::ComputeMode::tf32);
  }
}

TEST(Fp8, LinearLayersMultiplyFp8AndNothingElseDoes) {
  const program::ProgramSet set = build(
      aligned(Precision::fp8, {{"vocabulary", "on"}, {"tp_output", "gather"}}), {.tp = 2, .pp = 2});
  for (const program::RankProgram& program : set.programs) {
    std::map<std::string, int> kinds;  // "type of A x type of B -> type of D"
    for (const auto& [op, gemm] : all_of<Gemm>(program)) {
      const auto type = [&](const program::Matrix& matrix) {
        return program.buffers[matrix.slice.buffer].dtype;
      };
      ++kinds[std::string{name(type(gemm->a))} + " x " + std::string{name(type(gemm->b))} + " = " +
              std::string{name(type(gemm->d))}];
      if (type(gemm->a) == DType::bf16) continue;
      EXPECT_EQ(gemm->transpose_a, program::Transpose::no);
      EXPECT_EQ(gemm->transpose_b, program::Transpose::yes);
      EXPECT_NE(gemm->descale_a, program::no_buffer);
      EXPECT_NE(gemm->descale_b, program::no_buffer);
      for (const std::uint64_t number :
           {std::uint64_t{gemm->m}, std::uint64_t{gemm->n}, std::uint64_t{gemm->k},
            gemm->a.row_stride, gemm->b.row_stride, gemm->d.row_stride}) {
        EXPECT_EQ(number % 16, 0U);
      }
    }
    const int linears = 4 * 4 * 3;  // of 4 layers a stage in 3 microbatches
    EXPECT_EQ(kinds["e4m3 x e4m3 = bf16"], linears);
    EXPECT_EQ(kinds["e5m2 x e4m3 = bf16"], linears);
    EXPECT_EQ(kinds["e4m3 x e5m2 = f32"], linears);
    // Attention, and on the last stage the vocabulary's weight gradient.
    EXPECT_GT(kinds["bf16 x bf16 = bf16"], 0);
    EXPECT_EQ(kinds.size(), &program == &set.programs.back() ? 5U : 4U);
  }
}

TEST(Fp8, CastsWeightsOnceAStepAndEachOperandOnce) {
  const program::ProgramSet set = build(aligned(Precision::fp8), {});
  std::map<std::pair<program::BufferId, std::uint64_t>, int> casts_of;
  int weights = 0, gradients = 0, inputs = 0;
  const program::RankProgram& program = set.programs[0];
  for (const auto& [op, cast] : all_of<Cast>(program)) {
    EXPECT_EQ(cast->scaling, program::CastScale::amax);
    EXPECT_GE(op->place.layer, 0);
    const DType type = program.buffers[cast->dst.slice.buffer].dtype;
    EXPECT_EQ(cast->target, type == DType::e4m3 ? 448 : 57344);
    if (program.buffers[cast->src.slice.buffer].role == Role::weight) {
      EXPECT_EQ(op->place.phase, program::Phase::forward);
      EXPECT_EQ(++casts_of[std::pair(cast->src.slice.buffer, cast->src.slice.offset)], 1);
      ++weights;
    } else {
      ++(type == DType::e5m2 ? gradients : inputs);
    }
  }
  EXPECT_EQ(weights, 4 * 4);
  EXPECT_EQ(inputs, 4 * 4 * 3);
  EXPECT_EQ(gradients, 4 * 4 * 3);
}

TEST(Fp8, KeepsNarrowInputsForBackward) {
  const auto kept = [](Precision precision) {
    const program::ProgramSet set = build(aligned(precision, {{"schedule", "gpipe"}}), {});
    const program::Facts facts = program::facts(set.programs[0], set.mesh);
    EXPECT_EQ(facts.peak_live_microbatches, 3);
    return facts.peak_of_role[static_cast<std::size_t>(Role::activation)].value();
  };
  EXPECT_LT(kept(Precision::fp8), kept(Precision::bf16));
}

template <class Action>
std::string refusal(const Action& action) {
  try {
    action();
  } catch (const base::UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Fp8, RefusesWhatIsNoMultipleOfSixteen) {
  const auto refused = [](const auto& change) {
    Request request = aligned(Precision::fp8);
    change(request);
    return refusal([&] { static_cast<void>(build(request, {})); });
  };
  EXPECT_EQ(refused([](Request& /*r*/) {}), "");
  EXPECT_THAT(refused([](Request& r) { r.model.sequence = 12; }),
              HasSubstr("sequence x microbatch = 12 x 2 = 24"));
  EXPECT_THAT(refused([](Request& r) { r.model.hidden = 72; }), HasSubstr("hidden = 72"));
  EXPECT_THAT(refused([](Request& r) { r.model.ffn = 90; }), HasSubstr("ffn on a rank = 90"));
  EXPECT_THAT(refused([](Request& r) { r.model.head_size = 3; }), HasSubstr("head_size"));
  EXPECT_THAT(refused([](Request& r) { r.model.ffn = 90; }), HasSubstr("--dtype bf16"));
}

TEST(Fp8, LimitsTpSoThatSharesStayMultiplesOfSixteen) {
  const Workload& hybrid = find_workload("hybrid");
  const auto allows = [&](Precision precision, int tp, const char* output = "reduce") {
    const Request base = aligned(precision, {{"tp_output", output}});
    const auto limits = hybrid.limits(base, Scaling::strong);
    return !mesh::violation(mesh::Shape{.tp = tp}, limits);
  };
  EXPECT_TRUE(allows(Precision::bf16, 4));
  EXPECT_TRUE(allows(Precision::fp8, 2));
  EXPECT_FALSE(allows(Precision::fp8, 4)) << "96 / 4 = 24";
  EXPECT_TRUE(allows(Precision::fp8, 2, "gather"));
}

TEST(Fp8, TwinsAreAlignedForEveryModelAndMesh) {
  const Workload& hybrid = find_workload("hybrid");
  for (const std::string& model : model_names()) {
    for (const int tp : {1, 2, 8}) {
      Request base{.model = load_model(model), .precision = Precision::fp8};
      base.options = {{"microbatch", "1"}, {"microbatches", "4"}, {"tp_output", "gather"}};
      const mesh::Shape mesh{.tp = tp};
      if (mesh::violation(mesh, hybrid.limits(base, Scaling::strong))) continue;
      EXPECT_EQ(refusal([&] {
                  const Request twin = hybrid.twin(hybrid.scale(base, mesh, Scaling::strong));
                  static_cast<void>(hybrid.build(twin));
                }),
                "")
          << model << " tp=" << tp;
    }
  }
}

}  // namespace
}  // namespace isoscale::workloads
