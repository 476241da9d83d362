// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Programs of every precision, which do the same work on other operands, and of the option
// transport: the same ops on the same bytes, but what travels over tp and between stages lies in
// symmetric memory, and nothing else does. Conversions round to the narrow types of elements as
// these are published, and casts scale to their range.
#include <bit>

#include "program/check_races_and_matching.hpp"
#include "program/low_precision.hpp"
#include "stack_samples.hpp"
#include "tests/support/gpu_rounding.hpp"

namespace isoscale::workloads {
namespace {

using namespace program;  // NOLINT(google-build-using-namespace)

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

TEST(Fp8, CastsWeightsOnceAStep) {
  const program::ProgramSet set = weak(aligned(Precision::fp8), {});
  std::map<std::pair<program::BufferId, std::uint64_t>, int> casts_of;
  int weights = 0;
  const program::RankProgram& program = set.programs[0];
  for (const auto& [op, cast] : all_of<program::Cast>(program)) {
    EXPECT_EQ(cast->scaling, program::CastScale::amax);
    EXPECT_GE(op->place.layer, 0);
    const DType type = program.buffers[cast->dst.slice.buffer].dtype;
    EXPECT_EQ(cast->target, type == DType::e4m3 ? 448 : 57344);
    if (program.buffers[cast->src.slice.buffer].role != Role::weight) continue;
    EXPECT_EQ(op->place.phase, program::Phase::forward);
    EXPECT_EQ(++casts_of[std::pair(cast->src.slice.buffer, cast->src.slice.offset)], 1);
    ++weights;
  }
  EXPECT_EQ(weights, 4 * 4);
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

constexpr double infinity = std::numeric_limits<double>::infinity();

double value_of(const NarrowFormat& format, unsigned code) {
  return static_cast<double>(decode(format, static_cast<std::uint16_t>(code)));
}
double rounded(const NarrowFormat& format, double value) {
  return value_of(format, encode(format, value));
}

TEST(Narrow, EveryCodeRoundTrips) {
  for (const NarrowFormat& format : {f16_format, bf16_format, e4m3_format, e5m2_format}) {
    for (unsigned code = 0; code < 2U * format.sign(); ++code) {
      const double value = value_of(format, code);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(rounded(format, value)));
      } else if (std::isinf(value) && format.overflow == format.largest) {
        EXPECT_EQ(rounded(format, value), std::copysign(value_of(format, format.largest), value));
      } else {
        EXPECT_EQ(encode(format, value), code) << value;
      }
    }
  }
}

/// OCP 8-bit floating point specification, table 1; IEEE 754 binary16; bfloat16.
TEST(Narrow, HasThePublishedConstants) {
  const auto values = [](const NarrowFormat& format, const std::vector<unsigned>& codes) {
    return mapped(codes, [&](unsigned code) { return value_of(format, code); });
  };
  const auto two_to = [](int exponent) { return std::ldexp(1, exponent); };
  EXPECT_THAT(values(e4m3_format, {0x7E, 0x08, 0x01, 0xB8, 0x7F, 0xFF}),
              ElementsAre(448, two_to(-6), two_to(-9), -1, IsNan(), IsNan()));
  EXPECT_THAT(values(e5m2_format, {0x7B, 0x04, 0x01, 0x7C, 0x7D}),
              ElementsAre(57344, two_to(-14), two_to(-16), infinity, IsNan()));
  EXPECT_THAT(values(f16_format, {0x7BFF, 0x0001, 0xFC00}),
              ElementsAre(65504, two_to(-24), -infinity));
  EXPECT_THAT(values(bf16_format, {0x3F80, 0x0001}), ElementsAre(1, two_to(-133)));
}

TEST(Narrow, RoundsToTheNearestAndTiesToTheEvenCode) {
  for (const NarrowFormat& format : {f16_format, bf16_format, e4m3_format, e5m2_format}) {
    for (unsigned code = 0; code < format.largest; ++code) {
      const double low = value_of(format, code), high = value_of(format, code + 1);
      const double middle = (low + high) / 2;
      const unsigned even = code % 2 == 0 ? code : code + 1;
      ASSERT_EQ(encode(format, middle), even) << middle;
      ASSERT_EQ(encode(format, -middle), even | format.sign()) << middle;
      ASSERT_EQ(encode(format, std::nextafter(middle, low)), code) << middle;
      ASSERT_EQ(encode(format, std::nextafter(middle, high)), code + 1) << middle;
    }
  }
}

TEST(Narrow, OverflowsAsItsTypeDoes) {
  for (const double huge : {1e30, 1e308, infinity}) {
    EXPECT_EQ(rounded(e4m3_format, huge), 448);
    EXPECT_EQ(rounded(e4m3_format, -huge), -448);
    EXPECT_EQ(rounded(e5m2_format, huge), 57344);
    EXPECT_EQ(rounded(f16_format, huge), infinity);
  }
  EXPECT_EQ(rounded(e4m3_format, 464), 448) << "halfway to the value after the largest";
  EXPECT_EQ(rounded(e4m3_format, 470), 448);
  EXPECT_EQ(rounded(f16_format, std::nextafter(65520.0, 0)), 65504);
  EXPECT_EQ(rounded(f16_format, 65520), infinity);
  EXPECT_EQ(rounded(bf16_format, 3.4e38), infinity);
  EXPECT_EQ(rounded(bf16_format, 1e308), infinity);
  EXPECT_EQ(rounded(f16_format, 1e-320), 0);
  EXPECT_TRUE(std::signbit(rounded(f16_format, -1e-30)));
}

/// All exponents and signs of f32, infinities, NaNs and subnormals among them.
std::vector<float> floats_of_all_kinds() {
  std::mt19937 engine{7};
  std::vector<float> values(200'000);
  for (float& value : values) value = std::bit_cast<float>(static_cast<std::uint32_t>(engine()));
  return values;
}

TEST(Narrow, AgreesWithTheCompilersHalf) {
  for (const float value : floats_of_all_kinds()) {
    // Most exponents of f32 lie outside of f16's: bring half of them near.
    const float near = std::isfinite(value) && value != 0
                           ? std::ldexp(value, -std::ilogb(value) % 32 - std::ilogb(value))
                           : value;
    for (const float x : {value, near}) {
      const auto half = static_cast<_Float16>(x);
      if (std::isnan(x)) {
        EXPECT_TRUE(std::isnan(rounded(f16_format, x)));
      } else {
        ASSERT_EQ(encode(f16_format, x), std::bit_cast<std::uint16_t>(half)) << x;
      }
    }
  }
}

TEST(Narrow, RoundsTf32ToElevenSignificantBits) {
  const float ulp = std::ldexp(1.0F, -10);
  EXPECT_EQ(round_to_tf32(1 + ulp), 1 + ulp);
  EXPECT_EQ(round_to_tf32(1 + ulp / 2), 1);
  EXPECT_EQ(round_to_tf32(1 + 1.5F * ulp), 1 + 2 * ulp);
  EXPECT_EQ(round_to_tf32(-1 - 0.51F * ulp), -1 - ulp);
  EXPECT_EQ(round_to_tf32(std::numeric_limits<float>::infinity()),
            std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(round_to_tf32(std::bit_cast<float>(0x7F800001U))));
  for (const float value : floats_of_all_kinds()) {
    if (!std::isnormal(value)) continue;
    const double exact = value, quantum = std::ldexp(1.0, std::ilogb(value) - 10);
    const auto expected = static_cast<float>(std::nearbyint(exact / quantum) * quantum);
    ASSERT_EQ(round_to_tf32(value), expected) << value;
  }
}

TEST(AmaxScale, IsTheLargestPowerOfTwoThatFits) {
  EXPECT_EQ(amax_scale(448, 448), 1);
  EXPECT_EQ(amax_scale(448, 1), 256);
  EXPECT_EQ(amax_scale(448, std::nextafter(448.0, 500)), 0.5);
  EXPECT_EQ(amax_scale(57344, 3), std::ldexp(1, 14));
  std::mt19937 engine{11};
  std::uniform_real_distribution<double> exponent{-100, 100};
  for (int i = 0; i < 1000; ++i) {
    const double largest = std::exp2(exponent(engine)), scale = amax_scale(448, largest);
    EXPECT_LE(scale * largest, 448);
    EXPECT_GT(2 * scale * largest, 448);
  }
}

TEST(AmaxScale, IsOneWithoutAMeasureAndStaysInTheRangeOfF32) {
  for (const double none : {0.0, infinity, std::nan("")}) EXPECT_EQ(amax_scale(448, none), 1);
  EXPECT_EQ(amax_scale(448, 1e-320), std::ldexp(1, 126));
  EXPECT_EQ(amax_scale(448, 1e300), std::ldexp(1, -126));
}

}  // namespace
}  // namespace isoscale::workloads
