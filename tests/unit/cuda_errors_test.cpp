// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// What becomes of every code that CUDA, cuBLAS and NCCL can answer with; no GPU is needed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <typeinfo>

#include "base/error.hpp"
#include "executor/cuda/errors_and_handles.hpp"

namespace isoscale::executor::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

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

/// What says that a process ends, to CUDA, is an invalid argument to NCCL.
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
