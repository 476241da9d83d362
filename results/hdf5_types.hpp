// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "results/hdf5.hpp"

namespace isoscale::results::hdf5 {

/// How a number lies in a file and in memory, and which kinds of number convert to it.
struct NumberTypes {
  hid_t file, memory;
  H5T_class_t kind;
};

inline NumberTypes types_of(double) { return {H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, H5T_FLOAT}; }
inline NumberTypes types_of(std::int64_t) { return {H5T_STD_I64LE, H5T_NATIVE_INT64, H5T_INTEGER}; }
inline NumberTypes types_of(std::int32_t) { return {H5T_STD_I32LE, H5T_NATIVE_INT32, H5T_INTEGER}; }
inline NumberTypes types_of(std::uint64_t) {
  return {H5T_STD_U64LE, H5T_NATIVE_UINT64, H5T_INTEGER};
}
inline NumberTypes types_of(std::uint32_t) {
  return {H5T_STD_U32LE, H5T_NATIVE_UINT32, H5T_INTEGER};
}
inline NumberTypes types_of(std::uint8_t) { return {H5T_STD_U8LE, H5T_NATIVE_UINT8, H5T_INTEGER}; }

}  // namespace isoscale::results::hdf5
