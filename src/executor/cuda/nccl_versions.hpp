// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <nccl.h>

#include <fmt/format.h>

#include <string>

#include "base/error.hpp"
#include "program/buffer.hpp"

/// All that differs between versions of NCCL; no other file asks for the version.
namespace isoscale::executor::cuda {

static_assert(NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0),
              "isoscale needs NCCL 2.18 or newer: ncclCommSplit came with it");

/// Throws base::Error for types that this NCCL does not know.
[[nodiscard]] inline ncclDataType_t nccl_type(program::DType type) {
  switch (type) {
    case program::DType::f64:
      return ncclFloat64;
    case program::DType::f32:
      return ncclFloat32;
    case program::DType::f16:
      return ncclFloat16;
    case program::DType::bf16:
      return ncclBfloat16;
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
    case program::DType::e4m3:
      return ncclFloat8e4m3;
    case program::DType::e5m2:
      return ncclFloat8e5m2;
#endif
    case program::DType::i64:
      return ncclInt64;
    case program::DType::i32:
      return ncclInt32;
    case program::DType::i8:
      return ncclInt8;
    case program::DType::u8:
      return ncclUint8;
    default:
      throw base::Error(
          fmt::format("NCCL {}.{} does not know {}", NCCL_MAJOR, NCCL_MINOR, program::name(type)));
  }
}

/// Aborts between these two happen together. Before NCCL 2.22 they cannot.
inline void begin_joint_abort() noexcept {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
  static_cast<void>(ncclGroupStart());
#endif
}
inline void end_joint_abort() noexcept {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
  static_cast<void>(ncclGroupEnd());
#endif
}

/// `name` must outlive the communicator.
inline void set_name([[maybe_unused]] ncclConfig_t& config,
                     [[maybe_unused]] const std::string& name) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 26, 0)
  config.commName = name.c_str();
#endif
}

}  // namespace isoscale::executor::cuda
