// Signals of a process that flow shares with the program.
#pragma once

#include <functional>
#include <thread>

namespace flow {

// Starts a thread that receives no signals: they are for the program's own threads. Throws
// std::system_error if the system cannot start it.
std::thread start_quiet_thread(std::function<void()> body);

// Installs a handler for a signal whose action is the default one; a handler of the program stays.
void handle_if_default(int number, void (*handler)(int), int flags);

}  // namespace flow
