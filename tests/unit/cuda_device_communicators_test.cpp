// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include <typeinfo>

#include "executor/cuda/communicators.hpp"
#include "executor/cuda/gemm.hpp"
#include "executor/cuda/kernels/nccl_versions.hpp"
#include "stack_samples.hpp"
#include "tests/executor/sketch.hpp"

namespace isoscale::executor::cuda {
namespace {

using mesh::Axis;
using mesh::Shape;
using namespace program;  // NOLINT(google-build-using-namespace)

TEST(Check, NamesThePlaceOfTheCall) {
  try {
    check(cudaErrorInvalidValue);
    FAIL();
  } catch (const CudaError& error) {
    EXPECT_THAT(error.where().file_name(), HasSubstr("cuda_device_communicators_test.cpp"));
  }
}

/// A collective of four members whose buffers lie where the test says, in bytes.
CollectiveCall call_of(CollectiveKind kind, std::size_t send, std::size_t receive) {
  static std::array<std::byte, 1024> memory{};
  CollectiveCall call{.kind = kind, .data = {.members = 4, .me = 2}};
  call.data.count = 16;
  call.data.sent = call.data.received = 64;
  call.data.send = memory.data() + send;
  call.data.receive = memory.data() + receive;
  return call;
}

TEST(Nccl, InPlaceIsOneAddressAndNoOther) {
  using enum CollectiveKind;
  for (const auto& [kind, send, receive, possible] : {std::tuple{reduce_scatter, 0, 512, true},
                                                      {reduce_scatter, 0, 32, true},
                                                      {reduce_scatter, 0, 0, false},
                                                      {all_gather, 32, 0, true},
                                                      {all_gather, 16, 0, false},
                                                      {all_to_all, 0, 64, true},
                                                      {all_to_all, 0, 0, false}}) {
    const CollectiveCall call = call_of(kind, send, receive);
    if (possible) {
      EXPECT_NO_THROW(require_possible(call)) << send << ", " << receive;
    } else {
      EXPECT_THROW(require_possible(call), base::Error) << send << ", " << receive;
    }
  }
}

/// The type and the text of what is thrown; of void where nothing is.
template <class Status>
std::pair<const std::type_info*, std::string> thrown_for(int code) {
  try {
    check(static_cast<Status>(code));
  } catch (const base::Error& error) {
    return {&typeid(error), error.what()};
  }
  return {&typeid(void), ""};
}

template <class Status>
std::string logged_for(int code) {
  testing::internal::CaptureStderr();
  log_release("a thing", static_cast<Status>(code));
  return testing::internal::GetCapturedStderr();
}

TEST(Errors, EveryCodeIsToldInTheLibrarysOwnWords) {
  EXPECT_EQ(*thrown_for<cudaError_t>(cudaSuccess).first, typeid(void));
  for (int code = 1; code <= 1100; ++code) {  // those behind cudaErrorUnknown, 999, are unknown too
    const auto status = static_cast<cudaError_t>(code);
    const auto [type, text] = thrown_for<cudaError_t>(code);
    ASSERT_EQ(*type, typeid(CudaError)) << code;
    ASSERT_THAT(text, AllOf(HasSubstr("CUDA: "), HasSubstr(cudaGetErrorName(status)),
                            HasSubstr(cudaGetErrorString(status)),
                            HasSubstr(fmt::format("code {})", code))));
  }
  // Codes that cuBLAS does not have are told like those that it has.
  EXPECT_EQ(*thrown_for<cublasStatus_t>(CUBLAS_STATUS_SUCCESS).first, typeid(void));
  for (int code = 1; code <= 30; ++code) {
    const auto status = static_cast<cublasStatus_t>(code);
    const auto [type, text] = thrown_for<cublasStatus_t>(code);
    ASSERT_EQ(*type, typeid(CublasError)) << code;
    ASSERT_THAT(text, AllOf(HasSubstr("cuBLAS: "), HasSubstr(cublasLtGetStatusName(status)),
                            HasSubstr(fmt::format("code {})", code))));
  }
}

TEST(Errors, EveryCodeOfNcclIsARefusalAFailureOrUnderWay) {
  for (int code = 0; code <= 20; ++code) {
    const auto [type, text] = thrown_for<ncclResult_t>(code);
    if (code == ncclSuccess || code == ncclInProgress) {
      EXPECT_EQ(*type, typeid(void));
      continue;
    }
    const bool refuses = code == ncclInvalidArgument || code == ncclInvalidUsage;
    EXPECT_EQ(*type, refuses ? typeid(NcclRefusal) : typeid(NcclError)) << code;
    EXPECT_THAT(text, AllOf(HasSubstr("NCCL: "),
                            HasSubstr(ncclGetErrorString(static_cast<ncclResult_t>(code))),
                            HasSubstr(fmt::format("(code {})", code))));
  }
}

/// Code 4 means that the process ends in CUDA (cudaErrorCudartUnloading), but an invalid argument
/// in NCCL, so only NCCL's is logged.
TEST(Errors, WhatCannotBeGivenBackIsToldByLibrary) {
  EXPECT_THAT(logged_for<cudaError_t>(cudaSuccess), IsEmpty());
  EXPECT_THAT(logged_for<cudaError_t>(cudaErrorCudartUnloading), IsEmpty());
  EXPECT_THAT(logged_for<cudaError_t>(cudaErrorIllegalAddress),
              AllOf(HasSubstr("a thing"), HasSubstr("cudaErrorIllegalAddress")));
  EXPECT_THAT(logged_for<cublasStatus_t>(CUBLAS_STATUS_SUCCESS), IsEmpty());
  EXPECT_THAT(logged_for<cublasStatus_t>(CUBLAS_STATUS_NOT_INITIALIZED),
              HasSubstr("CUBLAS_STATUS_NOT_INITIALIZED"));
  EXPECT_THAT(logged_for<ncclResult_t>(ncclSuccess), IsEmpty());
  EXPECT_THAT(logged_for<ncclResult_t>(ncclInProgress), IsEmpty());
  EXPECT_THAT(logged_for<ncclResult_t>(ncclInvalidArgument), HasSubstr("(code 4)"));
}

/// A program of three buffers A, B and D, whose GEMMs are looked at and never played.
class Gemms : public testing::Test {
 protected:
  static constexpr std::uint64_t most = 1 << 16;

  Gemms() { set_types(DType::bf16, DType::bf16, DType::f32); }

  void set_types(DType a, DType b, DType d, program::Space space = program::Space::device) {
    table_.buffers.clear();
    std::uint64_t end = 0;
    for (const DType type : {a, b, d, DType::f32}) {
      table_.buffers.push_back({.dtype = type, .space = space, .count = most, .offset = end});
      end += most * program::element_size(type);
    }
    table_.arena_bytes = {};
    table_.arena_bytes[static_cast<std::size_t>(space)] = end;
    memory_.assign(end + 256, std::byte{});
    ArenaPointers arenas{};
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
    arenas[static_cast<std::size_t>(space)] = memory_.data() + (256 - start % 256) % 256;
    resolver_ = std::make_unique<Resolver>(table_, Shape{}, 0, arenas);
  }

  static program::Matrix matrix(program::BufferId buffer, std::uint64_t rows, std::uint64_t columns,
                                std::uint64_t offset = 0) {
    return {.slice = {.buffer = buffer, .offset = offset, .count = rows * columns},
            .row_stride = columns};
  }
  static Gemm gemm(std::uint32_t m, std::uint32_t n, std::uint32_t k) {
    return {
        .m = m, .n = n, .k = k, .a = matrix(0, m, k), .b = matrix(1, k, n), .d = matrix(2, m, n)};
  }

  [[nodiscard]] GemmProblem problem(const Gemm& op) const { return gemm_problem(*resolver_, op); }
  [[nodiscard]] std::string key(const Gemm& op) const { return problem(op).key("a GPU"); }

  program::RankProgram table_;
  std::vector<std::byte> memory_;
  std::unique_ptr<Resolver> resolver_;
};

/// Row-major D = A * B is column-major D^T = B^T * A^T.
TEST_F(Gemms, RowMajorBecomesColumnMajorWithOperandsExchanged) {
  Gemm op = gemm(32, 64, 16);
  op.transpose_a = Transpose::yes;
  op.a = matrix(0, 16, 32);
  const GemmProblem p = problem(op);
  EXPECT_THAT((std::array{p.m, p.n, p.k}), ElementsAre(64, 32, 16));
  EXPECT_EQ(p.first.data, resolver_->address(op.b.slice));
  EXPECT_EQ(p.second.data, resolver_->address(op.a.slice));
  EXPECT_EQ(p.transpose_first, CUBLAS_OP_N);
  EXPECT_EQ(p.transpose_second, CUBLAS_OP_T);
  // Stored column-major: rows are the program's columns.
  EXPECT_THAT((std::array{p.first.rows, p.first.columns, p.first.leading}),
              ElementsAre(64, 16, 64));
  EXPECT_THAT((std::array{p.second.rows, p.second.columns, p.d.leading}), ElementsAre(32, 16, 64));
}

TEST_F(Gemms, AccumulationIsAtLeastF32) {
  for (const auto& [type, compute] : {std::pair{DType::bf16, CUBLAS_COMPUTE_32F},
                                      {DType::f16, CUBLAS_COMPUTE_32F},
                                      {DType::f32, CUBLAS_COMPUTE_32F},
                                      {DType::f64, CUBLAS_COMPUTE_64F}}) {
    set_types(type, type, type == DType::bf16 ? DType::f32 : type);
    EXPECT_EQ(compute_type(problem(gemm(16, 16, 16))), compute) << program::name(type);
  }
  EXPECT_EQ(scale_type(problem(gemm(16, 16, 16))), CUDA_R_64F);
  set_types(DType::f32, DType::f32, DType::f32);
  Gemm op = gemm(16, 16, 16);
  op.mode = program::ComputeMode::tf32;
  EXPECT_EQ(compute_type(problem(op)), CUBLAS_COMPUTE_32F_FAST_TF32);
}

TEST_F(Gemms, KeysDifferWhereAlgorithmsMay) {
  const Gemm op = gemm(32, 64, 16);
  const std::string plain = key(op);
  EXPECT_THAT(plain, AllOf(HasSubstr("m=32 n=64 k=16"), HasSubstr("bf16*bf16->f32")));
  Gemm shifted = op, accumulating = op, strided = op;
  shifted.a = matrix(0, 32, 16, 1);  // aligned to 2 bytes only
  accumulating.beta = 1;
  accumulating.c = accumulating.d;
  strided.d = {.slice = {.buffer = 2, .count = 4096}, .row_stride = 128};
  for (const Gemm& other : {gemm(64, 32, 16), shifted, accumulating, strided}) {
    EXPECT_NE(plain, key(other));
  }
  Gemm elsewhere = op, scaled = op;
  elsewhere.a = matrix(0, 32, 16, 128);  // 256 bytes further: as well aligned
  scaled.alpha = 0.5;                    // changes no algorithm
  for (const Gemm& like : {op, elsewhere, scaled}) EXPECT_EQ(plain, key(like));
}

TEST_F(Gemms, Fp8NeedsContiguousKAndMultiplesOf16) {
  set_types(DType::e4m3, DType::e5m2, DType::f32);
  Gemm op = gemm(32, 64, 48);
  op.b = matrix(1, 64, 48);
  op.transpose_b = Transpose::yes;
  op.descale_a = op.descale_b = 3;
  EXPECT_TRUE(problem(op).is_fp8());
  EXPECT_EQ(problem(op).transpose_first, CUBLAS_OP_T);
  EXPECT_EQ(problem(op).transpose_second, CUBLAS_OP_N);
  EXPECT_NE(problem(op).descale_first, nullptr);

  Gemm plain_b = gemm(32, 64, 48);
  EXPECT_THROW(std::ignore = problem(plain_b), base::Error);
  Gemm odd = op;
  odd.k = 40;
  odd.a = matrix(0, 32, 40);
  odd.b = matrix(1, 64, 40);
  EXPECT_THROW(std::ignore = problem(odd), base::Error);
  set_types(DType::e5m2, DType::e5m2, DType::f32);
  EXPECT_THROW(std::ignore = problem(op), base::Error);
}

TEST_F(Gemms, MixedTypesAndHostMemoryAreRefused) {
  using enum DType;
  using program::Space;
  for (const auto& [a, b, d, space] : {std::tuple{bf16, f16, f32, Space::device},
                                       {f32, f32, f64, Space::device},
                                       {bf16, bf16, f32, Space::pinned}}) {
    set_types(a, b, d, space);
    EXPECT_THROW(std::ignore = problem(gemm(16, 16, 16)), base::Error);
  }
}

TEST(GemmChoices, AlgorithmsSurviveAsText) {
  cublasLtMatmulAlgo_t algorithm{};
  for (std::size_t i = 0; i < std::size(algorithm.data); ++i) {
    algorithm.data[i] = 0x0123456789abcdefULL * (i + 1);
  }
  const cublasLtMatmulAlgo_t back = algorithm_of(to_text(algorithm));
  EXPECT_THAT(back.data, ElementsAreArray(algorithm.data));
  EXPECT_THROW(std::ignore = algorithm_of("12"), base::Error);
  EXPECT_THROW(std::ignore = algorithm_of(std::string(128, 'g')), base::Error);
}

/// NCCL matches messages between two ranks of one communicator by order alone.
TEST(Links, AreNamedAlikeByBothEndsAndToldApart) {
  for (const int extent : {2, 3, 4, 5, 6, 8}) {
    const Shape shape{.tp = 2, .pp = extent};
    for (int rank = 0; rank < shape.size(); ++rank) {
      for (int distance = 1; distance <= 3; ++distance) {
        SCOPED_TRACE(fmt::format("rank {} of pp={}, distance {}", rank, extent, distance));
        const LinkKind link = link_kind(shape, rank, Axis::pp, distance);
        const LinkKind back = link_kind(shape, rank, Axis::pp, -distance);
        const int peer = mesh::neighbour(shape, rank, Axis::pp, distance);
        EXPECT_EQ(link, link_kind(shape, peer, Axis::pp, -distance));
        if (2 * distance <= extent) {
          EXPECT_NE(link, back);
        }
      }
    }
  }
}

CommunicatorPlan plan_of(const Shape& shape) {
  return communicator_plan(
      workloads::strong({.model = workloads::load_model("tiny"),
                         .options = workloads::options_of("microbatch=1 microbatches=16")},
                        shape));
}

TEST(CommunicatorPlans, OneOfEachAxisAndStreamAndTwoOfAPipeline) {
  const CommunicatorPlan plan = plan_of({.tp = 2, .dp = 2, .pp = 4});
  EXPECT_EQ(plan.collectives.size(), 2U);  // tp on compute, dp on its own stream
  ASSERT_EQ(plan.links.size(), 2U);
  EXPECT_EQ(plan.links[0].parity, 0);
  EXPECT_EQ(plan.links[1].parity, 1);
  EXPECT_EQ(plan_of({.pp = 2}).links.size(), 1U);
  EXPECT_TRUE(plan_of({}).collectives.empty());
  EXPECT_TRUE(plan_of({}).links.empty());
}

/// The plan for messages `hops` further on and for those from as far back, on streams[i].
CommunicatorPlan plan_of_hops(int ranks, const std::vector<int>& hops,
                              const std::vector<program::StreamId>& streams = {0, 0, 0}) {
  using enum program::Direction;
  Sketch sketch;
  const program::Slice from = sketch.buffer<float>(1), to = sketch.buffer<float>(1);
  for (std::size_t i = 0; i < hops.size(); ++i) {
    sketch.emit(
        program::Exchange{{{send, Axis::dp, hops[i], from}, {receive, Axis::dp, -hops[i], to}}},
        streams[i]);
  }
  return communicator_plan(sketch.on({.dp = ranks}));
}

TEST(CommunicatorPlans, OneCarriesTheMessagesOfManyLinks) {
  const CommunicatorPlan joined = plan_of_hops(8, {1, 2, 5});
  ASSERT_EQ(joined.links.size(), 1U);
  EXPECT_EQ(joined.links[0], (LinkKind{.axis = Axis::dp, .distance = 0, .parity = 0}));
  for (int rank = 0; rank < 8; ++rank) {
    for (const int offset : {1, -2, 5}) {
      EXPECT_EQ(joined.carrier(link_kind({.dp = 8}, rank, Axis::dp, offset)), joined.links[0]);
    }
  }
  EXPECT_EQ(plan_of_hops(8, {1, -1}).links.size(), 1U);
  // Two links between the same ranks: ops correspond, and tell them apart.
  EXPECT_EQ(plan_of_hops(4, {1, 2, -2}).links.size(), 1U);
  // Messages of several streams are kept apart, also those of the link that closes an odd ring.
  EXPECT_EQ(plan_of_hops(4, {1, -1}, {0, 1}).links.size(), 2U);
  EXPECT_EQ(plan_of_hops(3, {1, -1}, {0, 1}).links.size(), 3U);
  EXPECT_TRUE(plan_of_hops(8, {1, 2, 5}, {0, 0, 1}).joined.empty());
}

/// The second of two ranks sends first what the first one receives last: order tells nothing.
TEST(CommunicatorPlans, OpsThatDoNotCorrespondKeepTwoLinksBetweenTheSameRanksApart) {
  using enum program::Direction;
  program::ProgramSet set{.mesh = {.dp = 2}, .programs = {}, .program_of_rank = {0, 1}};
  for (const program::Direction direction : {send, receive}) {
    Sketch sketch;
    const program::Slice buffer = sketch.buffer<float>(1);
    for (const int offset : {1, -1}) {
      sketch.emit(program::Exchange{{{direction, Axis::dp, offset, buffer}}});
    }
    set.programs.push_back(sketch.program());
  }
  EXPECT_TRUE(communicator_plan(set).joined.empty());
  EXPECT_EQ(communicator_plan(set).links.size(), 2U);
}

/// NCCL plays the kernels of several communicators on one stream one after the other.
void expect_one_communicator_per_exchange(const program::ProgramSet& set, const std::string& what) {
  const CommunicatorPlan plan = communicator_plan(set);
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    for (const program::Program* section : set.of(rank).sections()) {
      for (const program::Op& op : section->ops) {
        const auto* const exchange = std::get_if<program::Exchange>(&op.payload);
        if (exchange == nullptr) continue;
        std::set<LinkKind> carriers;
        for (const program::Transfer& at : exchange->transfers) {
          carriers.insert(plan.carrier(link_kind(set.mesh, rank, at.axis, at.offset)));
        }
        ASSERT_LE(carriers.size(), 1U) << what << ", rank " << rank;
      }
    }
  }
}

/// Tries each axis alone and in pairs on 2, 3, 4 or 8 ranks, with the options that exchange most
/// and a model whose numbers the ranks divide. Returns how many programs there are.
int tried_on(const workloads::Workload& workload, int ranks) {
  // A stage of infer hands on to one and receives from another in one op, on two streams: each
  // neighbour has a communicator of its own.
  const bool has_pairs_of_streams = workload.name == "infer" || workload.name == "serve";
  std::vector<Shape> shapes{{.dp = ranks}, {.tp = ranks}, {.pp = ranks}, {.cp = ranks}};
  if (workload.is_bench()) shapes.resize(1);
  for (const Shape& pair :
       {Shape{.tp = 2, .cp = ranks / 2}, {.tp = 2, .pp = ranks / 2}, {.cp = ranks / 2, .pp = 2}}) {
    if (ranks % 2 == 0 && !workload.is_bench()) shapes.push_back(pair);
  }
  std::vector<workloads::Options> all{{}, {{"sequence_parallel", "on"}, {"ring", "on"}}};
  if (workload.name == "collectives") {
    all = {{{"op", "sendrecv"}, {"sizes", "4KiB"}},
           {{"implementation", "ring"}, {"sizes", "4KiB"}}};
  } else if (workload.name == "p2p") {
    all = {{{"pairs", "all"}}, {{"pairs", "neighbours"}}};
  } else if (workload.is_bench()) {
    all.pop_back();
  }
  int tried = 0;
  for (const Shape& shape : shapes) {
    if (has_pairs_of_streams && shape.pp > 1) continue;
    for (const workloads::Options& options : all) {
      workloads::Request request{
          .model = workloads::test_model("hidden=96 ffn=192 heads=24 head_size=4 sequence=48 "
                                         "vocabulary=96 layers=" +
                                         std::to_string(ranks)),
          .mesh = shape,
          .options = options};
      const auto expect_one = [&](const program::ProgramSet& set) {
        expect_one_communicator_per_exchange(
            set, fmt::format("{} {}", workload.name, mesh::to_text(shape)));
        ++tried;
      };
      const int batches = workload.is_bench() ? workload.bench.batches(request) : 0;
      for (int batch = 0; batch < batches; ++batch) {
        expect_one(workload.bench.build(request, batch).set);
      }
      if (workload.is_bench()) continue;
      try {
        request.mesh = {};
        expect_one(workload.build(workload.scale(request, shape, workloads::Scaling::strong)));
      } catch (const base::UsageError&) {
        continue;  // a mesh or an option that the workload does not have
      }
    }
  }
  return tried;
}

TEST(CommunicatorPlans, AnExchangeTakesOneCommunicatorInEveryWorkload) {
  for (const int ranks : {2, 3, 4, 8}) {
    for (const workloads::Workload& workload : workloads::registry()) {
      EXPECT_GT(tried_on(workload, ranks), 0) << workload.name << " on " << ranks;
    }
  }
}

TEST(CommunicatorPlans, PairsOfAllRanksTakeOne) {
  const workloads::Workload& p2p = workloads::find_workload("p2p");
  for (const int ranks : {4, 7, 16, 64}) {
    const workloads::Request request{.mesh = {.dp = ranks}};
    EXPECT_EQ(communicator_plan(p2p.bench.build(request, 0).set).links.size(), 1U) << ranks;
  }
}

}  // namespace
}  // namespace isoscale::executor::cuda
