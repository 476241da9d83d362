// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>

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
  using enum DType;
  static std::byte memory{};
  const auto casts = [](DType from, DType to) {
    Arguments<Cast> call;
    call.at(&Cast::src) = {&memory, from};
    call.at(&Cast::dst) = {&memory, to};
    return has_kernel(call);
  };
  for (const DType type : {f64, f32, f16, bf16}) {
    EXPECT_TRUE(has_kernel(of_type<Add>(type)));
    EXPECT_TRUE(casts(type, e4m3));
    EXPECT_TRUE(casts(f32, type));
  }
  EXPECT_FALSE(has_kernel(of_type<Add>(e4m3)));
  EXPECT_FALSE(casts(e4m3, f32));
  // Updates of narrow states would round to nothing.
  for (const auto& [state, gradient, weight, is_there] : {std::tuple{f64, f64, f64, true},
                                                          {f32, f32, bf16, true},
                                                          {f32, bf16, f32, true},
                                                          {bf16, bf16, bf16, false},
                                                          {f64, f32, f64, false}}) {
    Arguments<Update> call;
    call.at(&Update::master) = {&memory, state};
    call.at(&Update::gradient) = {&memory, gradient};
    call.at(&Update::weight) = {&memory, weight};
    EXPECT_EQ(has_kernel(call), is_there) << program::name(state) << program::name(weight);
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

}  // namespace
}  // namespace isoscale::executor::cuda
