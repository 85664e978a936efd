;; SPDX-License-Identifier: MIT
;; sbcl, which calls libc through addresses that it looks up by itself.
(require :sb-bsd-sockets)

(defun last-line (port path)
  (let ((socket (make-instance 'sb-bsd-sockets:inet-socket :type :stream :protocol :tcp)))
    (sb-bsd-sockets:socket-connect socket #(127 0 0 1) port)
    (let ((stream (sb-bsd-sockets:socket-make-stream socket :input t :output t :external-format :latin-1)))
      (format stream "GET ~a HTTP/1.0~c~c~c~c" path #\Return #\Newline #\Return #\Newline)
      (finish-output stream)
      (prog1 (loop for line = (read-line stream nil) while line for last = line finally (return last))
        (close stream)))))

(let ((port (parse-integer (second sb-ext:*posix-argv*))))
  (format t "~a~%" (last-line port "/hello.txt"))
  (loop for i below 8 do (format t "~a~%" (last-line port (format nil "/files/~d.txt" i)))))
