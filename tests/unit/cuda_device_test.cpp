// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <typeinfo>

#include "base/error.hpp"
#include "executor/cuda/device.hpp"
#include "executor/cuda/errors_and_handles.hpp"
#include "executor/cuda/kernels/kernels.hpp"
#include "executor/cuda/kernels/nccl_versions.hpp"
#include "executor/cuda/nccl_calls.hpp"

namespace isoscale::executor::cuda {
namespace {

using program::CollectiveKind;
using program::DType;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

template <class Error, class Status>
void expect_error(Status status, const char* text) {
  try {
    check(status);
    ADD_FAILURE() << "nothing was thrown for " << text;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

TEST(Check, ThrowsTheLibrarysOwnWords) {
  expect_error<CudaError>(cudaErrorInvalidValue, "cudaErrorInvalidValue");
  expect_error<CublasError>(CUBLAS_STATUS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED");
  expect_error<NcclError>(ncclInvalidUsage, "NCCL: ");
  EXPECT_NO_THROW(check(cudaSuccess));
  EXPECT_NO_THROW(check(CUBLAS_STATUS_SUCCESS));
  EXPECT_NO_THROW(check(ncclInProgress));
}

TEST(Check, NamesThePlaceOfTheCall) {
  try {
    check(cudaErrorInvalidValue);
    FAIL();
  } catch (const CudaError& error) {
    EXPECT_THAT(error.where().file_name(), HasSubstr("cuda_device_test.cpp"));
  }
}

TEST(Device, WithoutADriverItSaysSoAndWhatToDo) {
  if (versions().driver != 0) GTEST_SKIP() << "this machine has an NVIDIA driver";
  const std::string problem = device_problem();
  EXPECT_THAT(problem, HasSubstr("driver"));
  EXPECT_THAT(problem, HasSubstr("--device host"));
}

TEST(Versions, RuntimeAndNcclAreThoseOfTheHeaders) {
  EXPECT_EQ(versions().runtime, CUDART_VERSION);
  EXPECT_GE(versions().nccl, NCCL_VERSION(2, 18, 0));
}

TEST(Nccl, KnowsEveryTypeThatTravels) {
  EXPECT_EQ(nccl_type(DType::f64), ncclFloat64);
  EXPECT_EQ(nccl_type(DType::bf16), ncclBfloat16);
  EXPECT_EQ(nccl_type(DType::u8), ncclUint8);
  EXPECT_EQ(nccl_type(DType::i64), ncclInt64);
  EXPECT_EQ(nccl_operation(program::Reduction::min), ncclMin);
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
  EXPECT_NO_THROW(require_possible(call_of(CollectiveKind::reduce_scatter, 0, 512)));
  EXPECT_NO_THROW(require_possible(call_of(CollectiveKind::reduce_scatter, 0, 32)));
  EXPECT_THROW(require_possible(call_of(CollectiveKind::reduce_scatter, 0, 0)), base::Error);
  EXPECT_NO_THROW(require_possible(call_of(CollectiveKind::all_gather, 32, 0)));
  EXPECT_THROW(require_possible(call_of(CollectiveKind::all_gather, 16, 0)), base::Error);
  EXPECT_NO_THROW(require_possible(call_of(CollectiveKind::all_to_all, 0, 64)));
  EXPECT_THROW(require_possible(call_of(CollectiveKind::all_to_all, 0, 0)), base::Error);
}

/// An op whose common type is `type`.
template <class Op>
Arguments<Op> of_type(DType type, Op op = {}) {
  Arguments<Op> call;
  call.op = op;
  call.type = type;
  return call;
}

TEST(Kernels, PickElementsAndRowsOfFloatingTypes) {
  using program::Rows, program::Select, program::Spread;
  const auto is_there = [](DType type, std::uint32_t block) {
    const bool selects = has_kernel(of_type(type, Select{.block = block, .keep = 1}));
    EXPECT_EQ(has_kernel(of_type(type, Spread{.block = block, .keep = 1})), selects);
    return selects;
  };
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    EXPECT_TRUE(is_there(type, most_per_list_block));
    EXPECT_FALSE(is_there(type, most_per_list_block + 1));
    EXPECT_TRUE(has_kernel(of_type<Rows>(type)));
  }
  for (const DType type : {DType::e4m3, DType::i32}) {
    EXPECT_FALSE(is_there(type, 1));
    EXPECT_FALSE(has_kernel(of_type<Rows>(type)));
  }
}

TEST(Kernels, AreThereForTheTypesThatProgramsUse) {
  using program::Add, program::Cast, program::Update;
  static std::byte memory{};
  const auto casts = [](DType from, DType to) {
    Arguments<Cast> call;
    call.at(&Cast::src) = {&memory, from};
    call.at(&Cast::dst) = {&memory, to};
    return has_kernel(call);
  };
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    EXPECT_TRUE(has_kernel(of_type<Add>(type)));
    EXPECT_TRUE(casts(type, DType::e4m3));
    EXPECT_TRUE(casts(DType::f32, type));
  }
  EXPECT_FALSE(has_kernel(of_type<Add>(DType::e4m3)));
  EXPECT_FALSE(casts(DType::e4m3, DType::f32));
  const auto update = [](DType state, DType gradient, DType weight) {
    Arguments<Update> call;
    call.at(&Update::master) = {&memory, state};
    call.at(&Update::gradient) = {&memory, gradient};
    call.at(&Update::weight) = {&memory, weight};
    return has_kernel(call);
  };
  EXPECT_TRUE(update(DType::f64, DType::f64, DType::f64));
  EXPECT_TRUE(update(DType::f32, DType::f32, DType::bf16));
  EXPECT_TRUE(update(DType::f32, DType::bf16, DType::f32));
  EXPECT_FALSE(update(DType::bf16, DType::bf16, DType::bf16)) << "updates would round to nothing";
  EXPECT_FALSE(update(DType::f64, DType::f32, DType::f64));
}

// Each code that CUDA, cuBLAS and NCCL can answer with has its error; no GPU is needed.

struct Thrown {
  const std::type_info* type = &typeid(void);
  std::string text{};
};
template <class Status>
Thrown thrown_for(int code) {
  try {
    check(static_cast<Status>(code));
  } catch (const base::Error& error) {
    return {.type = &typeid(error), .text = error.what()};
  }
  return {};
}

template <class Status>
std::string logged_for(int code) {
  testing::internal::CaptureStderr();
  log_release("a thing", static_cast<Status>(code));
  return testing::internal::GetCapturedStderr();
}

constexpr int last_cuda_code = 1100;  // cudaErrorUnknown is 999; those behind it are unknown too

TEST(Errors, EveryCodeOfCudaIsTold) {
  for (int code = 1; code <= last_cuda_code; ++code) {
    const auto status = static_cast<cudaError_t>(code);
    const Thrown thrown = thrown_for<cudaError_t>(code);
    ASSERT_EQ(*thrown.type, typeid(CudaError)) << code;
    ASSERT_THAT(thrown.text, AllOf(HasSubstr("CUDA: "), HasSubstr(cudaGetErrorName(status)),
                                   HasSubstr(cudaGetErrorString(status)),
                                   HasSubstr(fmt::format("code {})", code))));
  }
  EXPECT_THAT(thrown_for<cudaError_t>(cudaErrorMemoryAllocation).text,
              HasSubstr("out of memory (cudaErrorMemoryAllocation, code 2)"));
}

/// Codes that cuBLAS does not have are told like those that it has.
TEST(Errors, EveryCodeOfCublasIsTold) {
  for (int code = 1; code <= 30; ++code) {
    const auto status = static_cast<cublasStatus_t>(code);
    const Thrown thrown = thrown_for<cublasStatus_t>(code);
    ASSERT_EQ(*thrown.type, typeid(CublasError)) << code;
    ASSERT_THAT(thrown.text, AllOf(HasSubstr("cuBLAS: "), HasSubstr(cublasLtGetStatusName(status)),
                                   HasSubstr(fmt::format("code {})", code))));
  }
  EXPECT_THAT(thrown_for<cublasStatus_t>(CUBLAS_STATUS_ALLOC_FAILED).text,
              HasSubstr("CUBLAS_STATUS_ALLOC_FAILED"));
}

TEST(Errors, EveryCodeOfNcclIsARefusalAFailureOrUnderWay) {
  for (int code = 1; code <= 20; ++code) {
    const Thrown thrown = thrown_for<ncclResult_t>(code);
    if (code == ncclInProgress) {
      EXPECT_EQ(*thrown.type, typeid(void));
      continue;
    }
    const bool refuses = code == ncclInvalidArgument || code == ncclInvalidUsage;
    EXPECT_EQ(*thrown.type, refuses ? typeid(NcclRefusal) : typeid(NcclError)) << code;
    EXPECT_THAT(thrown.text, AllOf(HasSubstr("NCCL: "),
                                   HasSubstr(ncclGetErrorString(static_cast<ncclResult_t>(code))),
                                   HasSubstr(fmt::format("(code {})", code))));
  }
  EXPECT_THAT(thrown_for<ncclResult_t>(ncclSystemError).text, HasSubstr("system error"));
  EXPECT_THAT(thrown_for<ncclResult_t>(ncclRemoteError).text, HasSubstr("remote process"));
}

/// Code 4 means that the process ends in CUDA (cudaErrorCudartUnloading), but an invalid argument
/// in NCCL, so only NCCL's is logged.
TEST(Errors, WhatCannotBeGivenBackIsToldByLibrary) {
  EXPECT_THAT(logged_for<cudaError_t>(cudaSuccess), IsEmpty());
  EXPECT_THAT(logged_for<cudaError_t>(cudaErrorCudartUnloading), IsEmpty());
  EXPECT_THAT(logged_for<cudaError_t>(cudaErrorIllegalAddress),
              AllOf(HasSubstr("giving back a thing failed"), HasSubstr("cudaErrorIllegalAddress")));
  EXPECT_THAT(logged_for<cublasStatus_t>(CUBLAS_STATUS_SUCCESS), IsEmpty());
  EXPECT_THAT(logged_for<cublasStatus_t>(CUBLAS_STATUS_NOT_INITIALIZED),
              HasSubstr("CUBLAS_STATUS_NOT_INITIALIZED"));
  EXPECT_THAT(logged_for<ncclResult_t>(ncclSuccess), IsEmpty());
  EXPECT_THAT(logged_for<ncclResult_t>(ncclInProgress), IsEmpty());
  EXPECT_THAT(logged_for<ncclResult_t>(ncclInvalidArgument), HasSubstr("(code 4)"));
}

}  // namespace
}  // namespace isoscale::executor::cuda
