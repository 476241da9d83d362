// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// What is not in the BLAS standard; one source per library, picked by CMake.
namespace isoscale::executor::host {

/// Sets the number of threads that a BLAS call of this process uses; returns what is in force,
/// 0 when the library does not tell.
int set_blas_threads(int threads);

[[nodiscard]] std::string blas_name();  ///< "OpenBLAS 0.3.21 (SkylakeX)"

/// Vector instructions that a CPU has.
enum class Vectors : std::uint8_t { unknown, avx2, avx512 };
/// What to tell the user when OpenBLAS multiplies with kernels of `core` ("Prescott") on a CPU that
/// has `vectors`: one that the library is too old to know gets the oldest. "" when all is well.
[[nodiscard]] std::string kernel_warning(std::string_view core, Vectors vectors);
/// The same for this process; "" where the library does not tell.
[[nodiscard]] std::string blas_warning();

}  // namespace isoscale::executor::host
