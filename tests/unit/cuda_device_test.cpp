// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <typeinfo>

#include "executor/cuda/communicators.hpp"
#include "executor/cuda/gemm.hpp"
#include "executor/cuda/kernels/nccl_versions.hpp"
#include "matchers.hpp"
#include "results/records/json_object.hpp"
#include "results/records/point_layout.hpp"

namespace isoscale::executor::cuda {
namespace {

using program::CollectiveKind;
using program::DType;
using program::Gemm;
using program::Transpose;

TEST(Check, NamesThePlaceOfTheCall) {
  try {
    check(cudaErrorInvalidValue);
    FAIL();
  } catch (const CudaError& error) {
    EXPECT_THAT(error.where().file_name(), HasSubstr("cuda_device_test.cpp"));
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

// Each code that CUDA, cuBLAS and NCCL can answer with has its error; no GPU is needed.

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

// Tests of the calls of cuBLASLt that multiplications become.

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
    resolver_ = std::make_unique<Resolver>(table_, mesh::Shape{}, 0, arenas);
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

TEST(GemmChoices, SurviveTheWayToOtherRanks) {
  const std::vector<GemmChoice> choices{{.shape = "m=1 n=2",
                                         .algorithm = "00ff",
                                         .workspace = 1 << 25,
                                         .time = 1.5e-5,
                                         .candidates = 7},
                                        {.shape = "m=3", .algorithm = "11"}};
  const auto back = [](const std::string& packed) {
    return results::unpacked<std::vector<GemmChoice>>(std::as_bytes(std::span{packed}));
  };
  EXPECT_EQ(back(results::packed(choices)), choices);
  EXPECT_THROW(std::ignore = back("one\tfield\n"), base::Error);
}

}  // namespace
}  // namespace isoscale::executor::cuda
