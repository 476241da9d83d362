// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Two ranks and a loop of MPI_Send and MPI_Recv: what the machine gives to a program that does no
// more. Prints the median of its bandwidths in bytes per second.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  constexpr int message = 4 << 20, messages = 8, passes = 21;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<char> memory(static_cast<std::size_t>(message) * messages, static_cast<char>(rank));
  std::vector<double> bandwidths;
  for (int pass = 0; pass < passes; ++pass) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int i = 0; i < messages; ++i) {
      char* const data = memory.data() + static_cast<std::ptrdiff_t>(i) * message;
      if (rank == 0) {
        MPI_Send(data, message, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      } else {
        MPI_Recv(data, message, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
    bandwidths.push_back(static_cast<double>(message) * messages / (MPI_Wtime() - begin));
  }
  std::ranges::sort(bandwidths);
  if (rank == 1) std::printf("%.0f\n", bandwidths[bandwidths.size() / 2]);
  MPI_Finalize();
  return 0;
}
