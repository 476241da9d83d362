// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Programs of every precision, which do the same work on other operands, and of the option
// transport: the same ops on the same bytes, but what travels over tp and between stages lies in
// symmetric memory, and nothing else does.

#include "program/check.hpp"
#include "stack_samples.hpp"

namespace isoscale::workloads {
namespace {

using program::Collective;
using program::DType;
using program::Gemm;
using program::Role;
using program::Space;
using program::Transport;

/// Divides by 16 in every extent, also over tp=2.
Request aligned(Precision precision, const Options& options = {}) {
  return request_of("hidden=64 ffn=96 kv_heads=4 head_size=16 sequence=16 vocabulary=64 gated=1", 3,
                    options, precision);
}

TEST(Precisions, AllDoTheSameWork) {
  for (const mesh::Shape& mesh : {mesh::Shape{}, "tp=2,dp=2,pp=2"_mesh}) {
    for (const Options& options : combinations({{"schedule", {"1f1b", "gpipe"}},
                                                {"tp_output", {"reduce", "gather"}},
                                                {"recompute", {"none", "selective", "full"}},
                                                {"elementwise", {"on", "off"}},
                                                {"vocabulary", {"on"}}})) {
      SCOPED_TRACE(testing::PrintToString(options) + " on " + mesh::to_string(mesh));
      const program::ProgramSet plain = weak(aligned(Precision::f32, options), mesh);
      for (const Precision precision :
           {Precision::tf32, Precision::f16, Precision::bf16, Precision::fp8}) {
        const program::ProgramSet set = weak(aligned(precision, options), mesh);
        EXPECT_NO_THROW(program::check(set)) << name(precision);
        for (int rank = 0; rank < mesh.size(); ++rank) {
          EXPECT_EQ(flop_of(set, rank), flop_of(plain, rank)) << name(precision) << ' ' << rank;
        }
      }
    }
  }
}

TEST(Precisions, Tf32IsAModeOfEveryGemm) {
  const program::ProgramSet set = weak(aligned(Precision::tf32, "vocabulary=on"_options), {});
  for (const auto& [op, gemm] : all_of<Gemm>(set.of(0))) {
    EXPECT_EQ(gemm->mode, program::ComputeMode::tf32);
  }
}

TEST(Fp8, LinearLayersMultiplyFp8AndNothingElseDoes) {
  const Options options = "vocabulary=on tp_output=gather"_options;
  const program::ProgramSet set = weak(aligned(Precision::fp8, options), {.tp = 2, .pp = 2});
  for (const program::RankProgram& program : set.programs) {
    std::map<std::array<DType, 3>, int> kinds;  // types of A, B and D
    for (const auto& [op, gemm] : all_of<Gemm>(program)) {
      const auto type = [&](const program::Matrix& matrix) {
        return program.buffers[matrix.slice.buffer].dtype;
      };
      ++kinds[{type(gemm->a), type(gemm->b), type(gemm->d)}];
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
    using enum DType;
    EXPECT_EQ((kinds[{e4m3, e4m3, bf16}]), linears);
    EXPECT_EQ((kinds[{e5m2, e4m3, bf16}]), linears);
    EXPECT_EQ((kinds[{e4m3, e5m2, f32}]), linears);
    // Attention, and on the last stage the vocabulary's weight gradient.
    EXPECT_GT((kinds[{bf16, bf16, bf16}]), 0);
    EXPECT_EQ(kinds.size(), &program == &set.programs.back() ? 5U : 4U);
  }
}

TEST(Fp8, CastsWeightsOnceAStepAndEachOperandOnce) {
  const program::ProgramSet set = weak(aligned(Precision::fp8), {});
  std::map<std::pair<program::BufferId, std::uint64_t>, int> casts_of;
  int weights = 0, gradients = 0, inputs = 0;
  const program::RankProgram& program = set.programs[0];
  for (const auto& [op, cast] : all_of<program::Cast>(program)) {
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
    const program::ProgramSet set = weak(aligned(precision, "schedule=gpipe"_options), {});
    const program::Facts facts = facts_of(set);
    EXPECT_EQ(facts.peak_live_microbatches, 3);
    return peak_of(facts, Role::activation);
  };
  EXPECT_LT(kept(Precision::fp8), kept(Precision::bf16));
}

TEST(Fp8, RefusesWhatIsNoMultipleOfSixteen) {
  const auto with = [](int Model::*extent, int value) {
    Request request = aligned(Precision::fp8);
    request.model.*extent = value;
    return request;
  };
  expect_refused({{aligned(Precision::fp8), {}, {}},
                  {with(&Model::sequence, 12), {}, {"sequence x microbatch", "12 x 2 = 24"}},
                  {with(&Model::hidden, 72), {}, {"hidden = 72"}},
                  {with(&Model::ffn, 90), {}, {"ffn on a rank", "= 90", "--dtype bf16"}},
                  {with(&Model::head_size, 3), {}, {"head_size"}}},
                 Scaling::weak);
}

TEST(Fp8, LimitsTpSoThatSharesStayMultiplesOfSixteen) {
  const auto allows = [](Precision precision, int tp, const Options& options = {}) {
    const auto limits =
        find_workload("hybrid").limits(aligned(precision, options), Scaling::strong);
    return !mesh::violation(mesh::Shape{.tp = tp}, limits);
  };
  EXPECT_TRUE(allows(Precision::bf16, 4));
  EXPECT_TRUE(allows(Precision::fp8, 2));
  EXPECT_FALSE(allows(Precision::fp8, 4)) << "96 / 4 = 24";
  EXPECT_TRUE(allows(Precision::fp8, 2, "tp_output=gather"_options));
}

TEST(Fp8, TwinsAreAlignedForEveryModelAndMesh) {
  const Workload& hybrid = find_workload("hybrid");
  for (const std::string& model : model_names()) {
    for (const int tp : {1, 2, 8}) {
      const Request base{.model = load_model(model),
                         .precision = Precision::fp8,
                         .options = "microbatch=1 microbatches=4 tp_output=gather"_options};
      const mesh::Shape mesh{.tp = tp};
      if (mesh::violation(mesh, hybrid.limits(base, Scaling::strong))) continue;
      EXPECT_NO_THROW((void)hybrid.build(hybrid.twin(scaled(base, mesh, Scaling::strong))))
          << model << " tp=" << tp;
    }
  }
}

program::ProgramSet transported(Options options, const mesh::Shape& mesh,
                                Keep keep = Keep::nothing) {
  Request request = scaled(
      request_of("hidden=32 head_size=4 layers=8 sequence=16 vocabulary=64", 8, std::move(options)),
      mesh, Scaling::strong);
  request.keep = keep;
  return find_workload("hybrid").build(request);
}

/// Buffers that ops touch by a transport, and how many ops travel by it.
struct Travel {
  std::set<program::BufferId> buffers{};
  std::size_t ops = 0;
};
Travel travel_of(const program::RankProgram& program, Transport transport) {
  Travel travel;
  for (const program::Program* section : program.sections()) {
    for (const program::Op& op : section->ops) {
      const auto* collective = std::get_if<Collective>(&op.payload);
      const auto* exchange = std::get_if<program::Exchange>(&op.payload);
      if (collective != nullptr && collective->transport == transport) {
        travel.buffers.insert({collective->send.buffer, collective->receive.buffer});
      } else if (exchange != nullptr && exchange->transport == transport) {
        for (const auto& transfer : exchange->transfers) {
          travel.buffers.insert(transfer.slice.buffer);
        }
      } else {
        continue;
      }
      ++travel.ops;
    }
  }
  return travel;
}

TEST(StrategyTransport, MovesWhatTravelsToSymmetricMemoryAndNothingElse) {
  for (const Options& options :
       {Options{}, "sequence_parallel=on chunks=2"_options, "sequence_parallel=on ring=on"_options,
        "tp_output=gather handover=scattered"_options, "schedule=zb-h1 recompute=full"_options}) {
    for (const mesh::Shape& mesh : {"tp=2,dp=2,pp=2"_mesh, "dp=4"_mesh, ""_mesh}) {
      Options with = options;
      with["transport"] = "symmetric";
      const program::ProgramSet plain = transported(options, mesh), moved = transported(with, mesh);
      ASSERT_EQ(plain.programs.size(), moved.programs.size());
      program::check(moved);
      for (std::size_t i = 0; i < plain.programs.size(); ++i) {
        const auto &one = plain.programs[i], &other = moved.programs[i];
        const Travel travel = travel_of(other, Transport::symmetric);
        EXPECT_EQ(travel.ops > 0, mesh.tp * mesh.pp > 1);
        EXPECT_EQ(travel_of(one, Transport::symmetric).ops, 0U);
        ASSERT_EQ(one.buffers.size(), other.buffers.size());
        for (program::BufferId id = 0; id < one.buffers.size(); ++id) {
          EXPECT_EQ(other.buffers[id].space,
                    travel.buffers.contains(id) ? Space::symmetric : one.buffers[id].space);
        }
        EXPECT_EQ(one.step().ops.size(), other.step().ops.size());
        const program::Facts a = program::facts(one, mesh), b = program::facts(other, mesh);
        EXPECT_EQ(a.flop.value(), b.flop.value());
        const auto sent = [](const program::Traffic& at) { return std::pair{at.axes, at.sent}; };
        EXPECT_TRUE(mapped(a.traffic, sent) == mapped(b.traffic, sent));
      }
    }
  }
}

TEST(StrategyTransport, PutsWhatKernelsReachAtTheSamePlacesOnAllRanksOfTp) {
  const mesh::Shape mesh{.tp = 4, .pp = 2};
  const program::ProgramSet set =
      transported("transport=symmetric sequence_parallel=on ring=on vocabulary=on"_options, mesh,
                  Keep::observables);
  for (int rank = 0; rank < mesh.size(); ++rank) {
    const program::RankProgram &mine = set.of(rank), &first = set.of(rank / 4 * 4);
    ASSERT_EQ(mine.buffers.size(), first.buffers.size());
    for (program::BufferId id = 0; id < mine.buffers.size(); ++id) {
      if (mine.buffers[id].space != Space::symmetric) continue;
      EXPECT_EQ(mine.buffers[id].offset, first.buffers[id].offset) << rank << ", " << id;
    }
  }
  EXPECT_NE(&set.of(0), &set.of(1));  // for each observes logits in an order of its own
}

TEST(StrategyTransport, LeavesGradientsOverDpToNccl) {
  const auto set = transported("transport=symmetric"_options, {.tp = 2, .dp = 2});
  std::size_t reductions = 0;
  for (const auto& [op, collective] : all_of<Collective>(set.of(0))) {
    const bool is_tp = collective->axes == mesh::AxisSet{mesh::Axis::tp};
    EXPECT_EQ(collective->transport, is_tp ? Transport::symmetric : Transport::nccl);
    reductions += is_tp ? 0 : 1;
  }
  EXPECT_GT(reductions, 0U);
}

TEST(StrategyTransport, OfMessagesHasNoAllToAll) {
  const Workload& p2p = find_workload("p2p");
  Request request{.mesh = {.dp = 4}, .options = "transport=symmetric"_options};
  std::set<std::string> kinds;
  std::size_t puts = 0;
  for (int batch = 0; batch < p2p.bench.batches(request); ++batch) {
    const Bench bench = p2p.bench.build(request, batch);
    program::check(bench.set);
    for (const RowSpec& row : bench.rows) {
      kinds.insert(row.text.at("kind"));
      EXPECT_EQ(row.text.at("transport"), "symmetric");
    }
    for (const program::RankProgram& program : bench.set.programs) {
      const Travel travel = travel_of(program, Transport::symmetric);
      puts += travel.ops;
      EXPECT_EQ(travel_of(program, Transport::nccl).ops, 0U);
      for (const program::BufferId id : travel.buffers) {
        EXPECT_EQ(program.buffers[id].space, Space::symmetric);
      }
    }
  }
  EXPECT_GT(puts, 0U);
  EXPECT_THAT(kinds, UnorderedElementsAre("latency", "bandwidth", "bidirectional", "bisection"));
  request.options["kinds"] = "latency,all_to_all";
  EXPECT_THROW(static_cast<void>(p2p.bench.batches(request)), base::UsageError);
}

}  // namespace
}  // namespace isoscale::workloads
