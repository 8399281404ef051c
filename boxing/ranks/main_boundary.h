// The boundary between a program and its ranks. Linking to flow::flow wraps main and exit, so that
// the program's own main runs once on each thread rank (FLOW_RANKS), and a failing rank reports the
// reason before it ends.
#pragma once

#include <optional>

namespace flow::internal {

using ProgramMain = int (*)(int argc, char** argv, char** environment);

// Runs main as the environment requires: on thread ranks, as one rank of a job, or as an ordinary
// program. If an exception leaves main on a rank, it is printed, the other ranks are told, and the
// exit code is: 1 for InvalidArgument, Unsupported and InternalError; 65 for a damaged input file;
// 70 if ranks disagree; 71 after a time-out; 72 if a rank was lost, or for an exception that is not
// flow's; 73 if memory ran out; 74 for input or output.
int run_program(ProgramMain program, int argc, char** argv, char** environment);

// Called by exit before the process ends. If `code` is not 0, the other ranks are told. On a thread
// rank, returns the code with which the process must end at once, without destroying static
// objects, because other ranks are still running. A thread rank with code 0 first waits here until
// the others have ended; if one of them failed, its code is returned.
std::optional<int> leave_program(int code);

}  // namespace flow::internal
